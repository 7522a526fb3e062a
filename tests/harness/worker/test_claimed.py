"""From the command line to the rows: each backend is checked for what it claims to be, and what it
keeps or hides counts.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FAKE_BACKENDS
from tests.harness.run.small_runs import QUICK, axes, by_backend, run_in
from tests.harness.worker.court import FOLDER

pytestmark = pytest.mark.long

N, WIDTH, HEADS = 512, 512, 8
SCORES = HEADS * N * N * 4
RESULT = N * WIDTH * 4
NEAR = ("linformer", "linformer:64", "performer")
HONEST = ("fused", "keeps_scores", "numpy_memory")
CAUGHT = ("stale_output_buffer", "cached_by_pointer")


def measured(folder: Path, *backends: str, **others: object) -> tuple[dict[str, Any], str]:
    """Rows by backend, and what was said."""
    shape = {"seq_len": N, "d_model": WIDTH, "heads": HEADS, **others}
    env = {"ATTNBENCH_BACKENDS": f"{FAKE_BACKENDS}{os.pathsep}{FOLDER}"}
    done = run_in(folder, *axes(",".join(backends), **shape), *QUICK, env=env)
    return by_backend(folder / done.stdout.strip()), done.stderr


def test_approximations_and_recurrence_are_measured_but_not_checked_as_exact(tmp_path):
    small = {"seq_len": 64, "d_model": 32, "heads": 2, "scope": "layer"}
    found, said = measured(tmp_path, "fused", *NEAR, "rnn", **small, passes="forward+backward")
    assert {row["status"] for row in found.values()} == {"ok"}, said
    assert {name: row["exactness"] for name, row in found.items()} == {
        "fused": "exact",
        "rnn": "other",
        **dict.fromkeys(NEAR, "approximate"),
    }
    assert found["fused"]["error_l2_ratio"] < 1e-5
    assert all(found[name]["error_l2_ratio"] > 0.01 for name in NEAR)
    assert found["linformer"]["error_l2_ratio"] != found["linformer:64"]["error_l2_ratio"]
    assert found["rnn"]["error_l2_ratio"] is found["rnn"]["error_ratio"] is None
    configurations = {name: row["configuration"] for name, row in found.items()}
    assert configurations["linformer:64"] == {"rank": 64}
    assert configurations["performer"] == {"features": 256}
    assert configurations["rnn"] == {"cell": "GRU"}
    assert all(row["peak_bytes"] and row["block_ms"] for row in found.values())
    assert f"approximate, error {100 * found['performer']['error_l2_ratio']:.1f} %" in said
    assert "fused takes" in said  # the only exact backend, even if others are faster


def test_memory_that_a_backend_keeps_is_in_its_row_and_stored_results_are_no_record(tmp_path):
    rows, said = measured(tmp_path, *HONEST, *CAUGHT)
    assert {rows[name]["status"] for name in HONEST} == {"ok"}, said
    fused, kept, numpy = (rows[name] for name in HONEST)
    assert fused["workspace_bytes"] == 0
    assert kept["peak_bytes"] < 2 * RESULT
    assert kept["workspace_bytes"] == SCORES
    for row in (fused, kept):  # null with a reason
        assert row["outside_bytes"] is None
        assert row["memory_missing"].keys() == {"outside_bytes"}
    assert (numpy["workspace_bytes"], numpy["output_bytes"]) == (0, RESULT)
    assert numpy["peak_bytes"] is None or numpy["peak_bytes"] > 2 * SCORES
    assert (numpy["peak_bytes"] is None) == ("peak_bytes" in numpy["memory_missing"])
    for name in CAUGHT:
        assert rows[name]["status"] != "ok"
        assert rows[name]["block_ms"] is None
