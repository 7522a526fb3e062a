"""What every file in harness/studies/ fulfils, and studies in a run."""

from math import prod
from pathlib import Path

import pytest
import torch

from attnbench.harness import studies
from attnbench.impls.problem import Problem
from tests.made_runs import read_rows

pytestmark = pytest.mark.long

CPU = torch.device("cpu")
SMALL = Problem(batch=1, seq_len=16, d_model=32, heads=4)


@pytest.fixture(params=studies.names(), scope="module")
def findings(request):
    part = studies.declared(request.param).parts[0]
    found = studies.load(request.param).run(SMALL, CPU, 0, **part)
    return [one if isinstance(one, dict) else one.stored() for one in found]


def test_what_is_declared_without_importing_is_what_the_file_has():
    for name in studies.names():
        module, declared = studies.load(name), studies.declared(name)
        assert declared.axes == getattr(module, "PARTS", {})
        assert declared.part_s == getattr(module, "PART_S", None)
        assert len(declared.parts) == prod(map(len, declared.axes.values()))


def test_equal_seeds_give_equal_findings():
    for name in ("score_scale", "layer_properties", "attention_maps"):
        one, other = (list(studies.load(name).run(SMALL, CPU, 3)) for _ in range(2))
        assert one == other


def rows_of(done) -> dict[str, dict]:
    (line,) = done.stdout.splitlines()
    return {row["case"]: row for row in read_rows(Path(line))}


SHAPE = ("--batch", "1", "--seq-len", "32,64", "--d-model", "32", "--heads", "2")
FLAGS = ("--backends", "sdpa", *SHAPE, "--device", "cpu")
QUICK = ("--set", "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}")


def test_a_run_keeps_a_row_per_study_and_says_so(attnbench):
    done = attnbench("run", *FLAGS, *QUICK, "--set", "studies=[parameter_count, attention_maps]")
    assert done.returncode == 0, done.stderr
    rows = rows_of(done)
    assert rows["study-parameter_count"]["status"] == "ok"
    assert len(rows["study-parameter_count"]["findings"]) == 10
    assert len(rows["study-attention_maps"]["findings"]) == 2  # one per head
    assert "2 cases and 2 studies" in done.stderr
    assert "10 findings" in done.stderr


def test_studies_are_chosen_like_cases_and_can_stand_alone(attnbench):
    studies = ("--set", "studies=[parameter_count, attention_maps]")
    done = attnbench("run", *FLAGS, *QUICK, *studies, "--only", "study-parameter")
    assert set(rows_of(done)) == {"study-parameter_count"}


def test_a_part_of_a_study_is_a_row_of_its_own(attnbench):
    part = ("--set", "studies=[trained_heads]", "--only", "trained_heads-majority-heads2")
    done = attnbench("run", *FLAGS, *QUICK, *part)
    (row,) = rows_of(done).values()
    assert row["case"] == "study-trained_heads-majority-heads2"
    assert row["part"] == {"task": "majority", "heads": 2}
    assert {(one["task"], one["heads"]) for one in row["findings"]} == {("majority", 2)}
    assert len(row["findings"]) >= 5


def test_a_study_that_fails_is_one_row_and_the_run_goes_on(attnbench, monkeypatch, tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import attnbench.harness.studies.parameter_count as study\n"
        "def run(problem, device, seed):\n    raise RuntimeError('a bug of the study')\n    yield\n"
        "study.run = run\n"
    )
    root = Path(__file__).parents[3] / ".package"
    studies = ("--set", "studies=[parameter_count, score_scale]")
    done = attnbench("run", *FLAGS, *QUICK, *studies, env={"PYTHONPATH": f"{folder}:{root}"})
    rows = rows_of(done)
    failed = rows["study-parameter_count"]
    assert (failed["status"], failed["findings"]) == ("error", [])
    assert "a bug of the study" in failed["reason"]
    assert rows["study-score_scale"]["status"] == "ok"
    assert done.returncode == 1
