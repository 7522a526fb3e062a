"""The kernels compiled for GPUs that are not here."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.impls._triton.configs import KERNELS
from tests.impls._triton.conftest import child, needs_triton

pytestmark = needs_triton
INSTRUCTIONS = {(8, 0): "mma.sync", (9, 0): "wgmma.mma", (10, 0): "tcgen05.mma"}


def instruction(job: dict[str, Any]) -> str:
    """The one that must multiply matrices."""
    if job["dtype"] == "fp32":
        return "mma.sync" if job["tf32"] else "fma"
    return INSTRUCTIONS[tuple(job["capability"])]


@pytest.mark.nightly
def test_kernels_compile_to_the_instructions_of_each_architecture(tmp_path: Path) -> None:
    found = child("compiled", "compiled", TRITON_CACHE_DIR=str(tmp_path))
    assert {tuple(job["capability"]) for job in found} == set(INSTRUCTIONS)
    for job in found:
        assert job["instruction"] == instruction(job), job
        assert job["copies_tiles"] == job["config"]["descriptors"], job
        assert job["specializes"] == job["config"]["specialize"], job
        assert job["shared_bytes"] <= 227 << 10, job

    def having(option: str) -> set[tuple[tuple[int, int], str]]:
        jobs = (job for job in found if job["config"][option])
        return {(tuple(job["capability"]), job["kernel"]) for job in jobs}

    newer = ((9, 0), (10, 0))
    assert having("descriptors") == {(one, kernel) for one in newer for kernel in KERNELS}
    assert having("specialize") == {((10, 0), "forward")}
