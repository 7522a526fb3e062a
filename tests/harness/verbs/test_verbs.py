"""attnbench.wall, doctor, gate, advise and merge: the same as their commands, quiet."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import attnbench
from attnbench.harness.devices.load import Load, LoadMeter
from attnbench.harness.verbs import turns
from tests.fakes.shard_runs import write_shard
from tests.github.test_action import SCENARIO
from tests.made_runs import fake_run

TINY = {"seq_len": [32, 64], "heads": 2, "head_dim": 8, "device": "cpu", "plan": "quick"}


def test_advice_is_that_of_the_command(here: Any) -> None:
    asked = ("advise", "gpt2", "--context", "512,1k", "--memory-gib", "4", "--device", "cpu")
    printed = here(*asked, "--json").stdout
    found = attnbench.advise("gpt2", context=[512, "1k"], memory_gib=4, device="cpu")
    assert found["measure"] == f"attnbench {' '.join(asked)} --measure"
    assert found == json.loads(printed)


def test_shards_are_merged_and_what_is_missing_is_told(here: Any, tmp_path: Path) -> None:
    some = [write_shard(tmp_path / "results", f"{number}/3") for number in (1, 2)]
    found = attnbench.merge(some, output=tmp_path / "whole")
    (one,) = found["runs"]
    assert (one["shards"], one["of"], one["absent_shards"]) == ([1, 2], 3, [3])
    run = attnbench.open_run(found["path"])
    assert run.statuses["not reached"] == len(one["missing"])
    again = json.loads(here("merge", *some, "-o", tmp_path / "other", "--json").stdout)
    assert again["runs"][0]["missing"] == one["missing"]
    with pytest.raises(attnbench.BadInput, match="another run, or one with other rows"):
        attnbench.merge(some, output=some[0])


@pytest.mark.long
def test_the_doctor_says_what_the_command_says(here: Any) -> None:
    import torch

    before = torch.get_num_threads()
    found, printed = attnbench.doctor(), json.loads(here("doctor", "--json").stdout)
    assert [one["about"] for one in found["findings"]] == [
        one["about"] for one in printed["findings"]
    ]
    assert torch.get_num_threads() == before


def test_two_checkouts_are_measured_on_the_idle_cores_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    threads: list[str] = []

    def measured(
        command: list[str], *, env: dict[str, str], show_errors: bool
    ) -> subprocess.CompletedProcess[str]:
        threads.append(env["OMP_NUM_THREADS"])
        run = fake_run(Path(command[-1]), 1)
        (run.parent / "latest").symlink_to(run.name)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(turns, "run_command", measured)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(LoadMeter, "read", lambda _: Load(others=3.0, cores=4))
    for side in ("base", "head"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "bench.yaml").write_text(SCENARIO)
    checkouts = (tmp_path / "base", tmp_path / "head")
    given = {"turns": 1, "gate": "peak_bytes: 0%", "output": tmp_path / "out"}
    found = attnbench.gate(*checkouts, **given)
    assert threads == ["1", "1"]
    assert (found["verdict"], found["reason"]) == ("passed", "")
    assert found["compare"] is not None
    assert found["compare"]["turns"] == 1
    assert (Path(found["output"]) / "report.html").exists()
    assert capfd.readouterr() == ("", "")
    with pytest.raises(attnbench.BadInput, match="has runs already"):
        attnbench.gate(*checkouts, **given)


FAR = "def attend(q, k, v, *, causal, scale):\n    return (q @ k.mT * scale).softmax(-1) @ v\n"


@pytest.mark.long
def test_every_row_is_told_once_it_is_on_disk_and_what_the_function_raises_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the backends is a function from elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "far_attention.py").write_text(FAR)
    monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))
    monkeypatch.chdir(tmp_path)
    rows: list[Any] = []

    def heard(row: Any) -> None:
        rows.append(row)
        (path,) = tmp_path.glob("2*/rows.jsonl")
        assert json.loads(path.read_text().splitlines()[-1]) == row
        if len(rows) == 2:
            raise ZeroDivisionError

    backends = [__import__("far_attention").attend, "sdpa"]
    changes = {"plan.budget_s": 0.2}
    with pytest.raises(ZeroDivisionError):
        attnbench.run(backends=backends, runs=tmp_path, set=changes, on_row=heard, **TINY)
    run = attnbench.open_run(next(tmp_path.glob("2*")))
    assert run.statuses == {"ok": 2, "not reached": 2}
    assert set(run.frame()["backend"]) == {"attend@far_attention", "sdpa"}


@pytest.mark.long
def test_a_wall_is_searched_and_its_frame_has_the_answer_of_the_command(tmp_path: Path) -> None:
    run = attnbench.wall(
        backends=["fused"], heads=2, head_dim=8, memory_gib=0.01, tolerance="50%", runs=tmp_path
    )
    (wall,) = run.walls().to_dict("records")
    assert wall["seq_len_low"] <= wall["longest_seq_len"]
    assert wall["memory_bytes"] == int(0.01 * 2**30)
    assert run.frame().empty
    shutil.rmtree(run.path)
