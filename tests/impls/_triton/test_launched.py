"""Triton's own launcher over a driver that computes nothing (tests/fakes/libcuda)."""

import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.impls._triton.conftest import child, needs_triton

GLUON = {(9, "bf16"), (9, "fp16")}
pytestmark = [
    needs_triton,
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler: apt install gcc"),
]


def listed(major: int, dtype: str) -> Any:
    return pytest.param(major, dtype, marks=pytest.mark.nightly, id=f"{major}.0-{dtype}")


@pytest.mark.parametrize(
    ("major", "dtype"),
    [
        pytest.param(9, "bf16", id="9.0-bf16"),
        *[
            listed(*one)
            for one in product((8, 9, 10), ("bf16", "fp16", "fp32"))
            if one != (9, "bf16")
        ],
    ],
)
def test_every_launch_is_one_that_the_driver_takes_and_the_kernel_reads(
    tmp_path: Path, major: int, dtype: str
) -> None:
    kind = str(tmp_path), "every", str(major), dtype
    found = child("launched", *kind, TRITON_CACHE_DIR=str(tmp_path / "cache"))
    assert found["faults"] == {}
    assert min(found["counts"].values()) >= 16
    gluon = {"hopper_forward_kernel"} if (major, dtype) in GLUON else set()
    assert set(found["counts"]) == {"forward_kernel", "grad_q_kernel", "grad_kv_kernel"} | gluon


def test_a_candidate_that_breaks_the_context_ends_the_process_and_the_next_one_leaves_it_out(
    tmp_path: Path,
) -> None:
    found = child("launched", str(tmp_path), "broken", TRITON_CACHE_DIR=str(tmp_path / "cache"))
    error = "broke the GPU's context: RuntimeError: Triton Error [CUDA]: an illegal memory access"
    assert error in found["reason"]
    (left_out,) = (
        one
        for one in found["facts"]["skipped"]
        if one["reason"].endswith("to retry") and "hung or broke" in one["reason"]
    )
    assert f"block_q={left_out['block_q']}" in found["reason"]
    assert len(found["facts"]["candidates"]) >= 3
