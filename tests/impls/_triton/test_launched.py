"""Triton's own launcher over a driver that computes nothing (tests/fakes/libcuda)."""

import shutil
from pathlib import Path

import pytest

from tests.impls._triton.conftest import child, needs_triton

pytestmark = [
    needs_triton,
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler: apt install gcc"),
]


def test_every_launch_for_9_0_is_one_that_the_driver_takes_and_the_kernel_reads(
    tmp_path: Path,
) -> None:
    found = child("launched", "every", str(tmp_path), TRITON_CACHE_DIR=str(tmp_path / "cache"))
    assert found["faults"] == {}
    assert min(found["counts"].values()) >= 16
    assert set(found["counts"]) == {
        *("forward_kernel", "hopper_forward_kernel", "grad_q_kernel", "grad_kv_kernel")
    }


def test_a_candidate_that_breaks_the_context_ends_the_process_and_the_next_one_leaves_it_out(
    tmp_path: Path,
) -> None:
    found = child("launched", "broken", str(tmp_path), TRITON_CACHE_DIR=str(tmp_path / "cache"))
    error = "broke the GPU's context: RuntimeError: Triton Error [CUDA]: an illegal memory access"
    assert error in found["reason"]
    (left_out,) = (
        one
        for one in found["facts"]["skipped"]
        if one["reason"].endswith("to retry") and "hung or broke" in one["reason"]
    )
    assert f"block_q={left_out['block_q']}" in found["reason"]
    assert len(found["facts"]["candidates"]) >= 3
