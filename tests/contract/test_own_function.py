"""Functions and backends of one's own: by module:function, from a folder, from an installed
package, right and wrong ones, each with its verdict.

Here too: what they may see of others. Inputs follow from the seed and change while they are timed,
and a backend that leaves torch with one thread slows no other.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FAKE_BACKENDS, ROOT
from tests.contract.conftest import last_rows, only_run, run_attnbench

MODULE = '''\
"""A function of a user."""

import torch


def attend(q, k, v, *, causal, scale):
    s = q @ k.mT * scale
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    return s.softmax(-1) @ v


def forgets_the_scale(q, k, v, *, causal, scale):
    return attend(q, k, v, causal=causal, scale=1.0)
'''
PLAIN = MODULE.split("def forgets", maxsplit=1)[0]
WRONG = [f"slightly_wrong:{name}" for name in ("rounding", "row", "tile", "key_too_many")]
WRONG += ["slightly_wrong:last_key", "forgets_the_scale@mine"]
NOT_AT_1024 = {("slightly_wrong:rounding", 1024), ("slightly_wrong:row", 1024)}
# of more than 128 queries one in each tile of 16 is compared, and in long sums fp32 errs as much
FOUND = [(name, n) for name in WRONG for n in (128, 1024) if (name, n) not in NOT_AT_1024]
RIGHT = ["naive", "fused", "sdpa", "attend@mine", "plain", "chunked:64", "records", "sets_threads"]
PLAN = "{like: quick, processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.05, windows: 1, \
window_s: 0.2}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    folder: Path
    code: int
    error: str
    rows: dict[tuple[str, int], dict[str, Any]]  # by backend and N


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Own:
    place = tmp_path_factory.mktemp("own")
    site, mine = place / "site", place / "backends"
    mine.mkdir()
    (place / "mine.py").write_text(MODULE)
    (mine / "plain.py").write_text(PLAIN)
    install_example(site)
    backends = ",".join(
        [*RIGHT[:3], "mine:attend", "mine:forgets_the_scale", *RIGHT[4:], *WRONG[:-1]]
    )
    shape = ("--batch", 1, "--seq-len", "128,1024", "--d-model", 32, "--heads", 2, "--causal")
    how = ("--device", "cpu", "--threads", 2, "--runs", "runs", "--set", f"plan={PLAN}")
    measure = ("--set", "measure=[latency, memory, utilization]")
    done = run_attnbench(
        *("run", "--backends", backends, *shape, *how, *measure),
        cwd=place,
        env={
            "ATTNBENCH_BACKENDS": os.pathsep.join([str(mine), str(FAKE_BACKENDS)]),
            "PYTHONPATH": os.pathsep.join([str(ROOT / ".package"), str(site)]),
            "RECORDS": str(place / "records"),
        },
    )
    assert done.returncode in (0, 1), done.stderr
    folder = only_run(place / "runs")
    return Own(
        folder=folder,
        code=done.returncode,
        error=done.stderr,
        rows={(row["backend"], row["seq_len"]): row for row in last_rows(folder).values()},
    )


def install_example(site: Path) -> None:
    """tests/example_backend as pip would put it there."""
    example = ROOT / "tests" / "example_backend"
    shutil.copytree(example / "attnbench_example", site / "attnbench_example")
    info = site / "attnbench_example-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: attnbench-example\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(
        "[attnbench.backends]\nchunked = attnbench_example.chunked\n"
    )


@pytest.mark.parametrize("seq_len", [128, 1024])
@pytest.mark.parametrize("backend", RIGHT)
def test_what_is_right_is_measured(own: Own, backend: str, seq_len: int) -> None:
    row = own.rows[backend, seq_len]
    if backend == "sets_threads" and row["status"] == "error":
        assert "thread" in row["reason"], "it may be convicted of what it does to others"
        return
    assert (row["status"], row["reason"]) == ("ok", "")
    assert row["error_ratio"] <= row["error_limit_ratio"]
    assert row["block_ms"]
    assert row["peak_bytes"] > 0


def test_what_comes_from_outside_is_timed_beside_the_baseline_in_its_own_worker(own: Own) -> None:
    sessions = {row["session"] for (name, _), row in own.rows.items() if name in RIGHT[:3]}
    for (name, _), row in own.rows.items():
        if row["status"] != "ok":
            continue
        assert row["beside"] == (None if name in RIGHT[:3] else "sdpa")
        assert (row["session"] in sessions) == (name in RIGHT[:3])
        if row["beside"]:
            nested = [
                [len(process) for process in row[field]] for field in ("beside_ms", "block_ms")
            ]
            assert nested[0] == nested[1]


@pytest.mark.parametrize(("backend", "seq_len"), FOUND)
def test_what_is_wrong_in_little_is_incorrect_and_has_no_speed(
    own: Own, backend: str, seq_len: int
) -> None:
    row = own.rows[backend, seq_len]
    assert row["status"] == "incorrect", row["reason"]
    assert row["reason"]
    assert row["block_ms"] is None


def test_errors_are_told_in_multiples_of_the_textbooks(own: Own) -> None:
    assert 2 < own.rows["slightly_wrong:rounding", 128]["error_ratio"] < 20
    assert own.rows["naive", 128]["error_ratio"] == pytest.approx(1, abs=0.5)


def test_the_verdicts_are_in_the_output_and_the_exit_code(own: Own) -> None:
    assert own.code == 1
    assert "Traceback" not in own.error
    for backend in WRONG:
        name = backend.replace(":", "_") if f"{backend}-" not in own.error else backend
        assert f"{name}-b1-n128" in own.error
    assert "incorrect" in own.error


def test_one_thread_that_a_backend_leaves_set_reaches_no_other(own: Own) -> None:
    seen = {one["threads"] for one in recorded(own)}
    assert seen == {2}
    for (backend, _), row in own.rows.items():
        if row["status"] == "ok" and backend != "sets_threads":
            assert {one["host_thread_count"] for one in row["windows"]} == {2}, backend


def test_the_inputs_change_while_they_are_timed(own: Own) -> None:
    assert len({one["values"] for one in recorded(own)}) > 3


def recorded(own: Own) -> list[dict[str, Any]]:
    text = (own.folder.parents[1] / "records").read_text()
    return [json.loads(line) for line in text.splitlines()]
