"""attnbench run --checkpoint: alone and beside a scenario, refused and resumed."""

import json
from pathlib import Path

import pytest

from tests.harness.heads.tiny_models import tiny
from tests.made_runs import read_rows

pytest.importorskip("transformers")

ALONE = ("run", "--device", "cpu", "--quiet")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    tiny("gpt2").save_pretrained(path := tmp_path / "mine")
    return path


def rows_of(done) -> dict[str, dict]:
    (line,) = done.stdout.splitlines()
    return {row["case"]: row for row in read_rows(Path(line))}


@pytest.mark.long
def test_a_model_alone_is_one_row_and_one_answer(attnbench, saved):
    done = attnbench("run", "--checkpoint", saved, "--device", "cpu", check=True)
    (row,) = rows_of(done).values()
    assert (row["case"], row["part"]) == ("study-checkpoint_heads-mine", {"checkpoint": "mine"})
    assert row["findings"][0]["layer_heads"] == [4, 4]
    assert "the 8 heads of mine" in done.stderr
    run = Path(done.stdout.strip())
    assert str(saved) not in json.dumps(json.loads((run / "run.json").read_text())["studies"])


@pytest.mark.long
def test_a_bad_file_is_one_line_and_leaves_no_run(attnbench, saved, tmp_path):
    weights = saved / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    out = tmp_path / "out"
    done = attnbench(*ALONE, "--checkpoint", saved, "--out", out)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: --checkpoint: ")
    assert "not a whole safetensors file; wanted one" in line
    assert not out.exists()


@pytest.mark.nightly
def test_resume_wants_the_file_again_and_then_goes_on(attnbench, saved, tmp_path):
    first = attnbench(*ALONE, "--checkpoint", saved, "--checkpoint", f"other={saved}")
    run = Path(first.stdout.strip())
    lines = (run / "rows.jsonl").read_text().splitlines(keepends=True)
    (run / "rows.jsonl").write_text(lines[0])
    refused = attnbench("run", "--resume", run, "--quiet")
    assert refused.returncode == 2
    assert "--checkpoint other=PATH" in refused.stderr
    assert len((run / "rows.jsonl").read_text().splitlines()) == 1
    done = attnbench("run", "--resume", run, "--checkpoint", f"other={saved}", "--quiet")
    assert done.returncode == 0, done.stderr
    assert set(rows_of(done)) == {"study-checkpoint_heads-mine", "study-checkpoint_heads-other"}
