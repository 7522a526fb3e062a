"""From the command line to the rows: what is kept counts, and what cannot be is no record."""

import os
from pathlib import Path

import pytest

from tests.conftest import FAKE_BACKENDS
from tests.harness.worker.court import FOLDER
from tests.made_runs import read_rows

pytestmark = pytest.mark.long

SCORES = 8 * 512 * 512 * 4
RESULT = 512 * 512 * 4
SMALL = ("--batch", "1", "--d-model", "512", "--heads", "8", "--seq-len", "512", "--device", "cpu")
QUICK = ("--set", "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}")


def test_memory_and_time_that_a_backend_hides_are_in_its_row(attnbench):
    honest = ("fused", "keeps_scores", "numpy_memory")
    names = ",".join((*honest, "stale_output_buffer", "cached_by_pointer"))
    folders = {"ATTNBENCH_BACKENDS": f"{FAKE_BACKENDS}{os.pathsep}{FOLDER}"}
    done = attnbench("run", *SMALL, *QUICK, "--backends", names, env=folders)
    rows = {row["backend"]: row for row in read_rows(Path(done.stdout.strip()))}
    assert {rows[name]["status"] for name in honest} == {"ok"}, done.stderr
    assert {rows[name]["shortest_call_ms"] is not None for name in honest} == {True}
    for name in ("launch_ms", "late_calls", "graph_failed", "unseen_work", "kernel_generation"):
        assert {rows[backend][name] for backend in honest} == {None}, "a CPU has none"

    fused, kept, numpy = (rows[name] for name in honest)
    assert fused["workspace_bytes"] == 0
    assert kept["peak_bytes"] < 2 * RESULT
    assert kept["workspace_bytes"] == SCORES
    for row in (fused, kept):  # null with a reason
        assert row["outside_bytes"] is None
        assert row["memory_missing"].keys() == {"outside_bytes"}
    assert (numpy["workspace_bytes"], numpy["output_bytes"]) == (0, RESULT)
    assert numpy["peak_bytes"] is None or numpy["peak_bytes"] > 2 * SCORES
    assert (numpy["peak_bytes"] is None) == ("peak_bytes" in numpy["memory_missing"])

    buffer, copies = rows["stale_output_buffer"], rows["cached_by_pointer"]
    assert buffer["status"] != "ok"
    assert buffer["block_ms"] is None
    assert copies["status"] != "ok"
    assert copies["block_ms"] is None
