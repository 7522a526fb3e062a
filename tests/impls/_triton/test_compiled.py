"""The kernels compiled for GPUs that are not here."""

from pathlib import Path
from typing import Any

import pytest

from tests.impls._triton.conftest import child, needs_triton

pytestmark = [needs_triton, pytest.mark.long]
INSTRUCTIONS = {80: "mma.sync", 90: "wgmma.mma", 100: "tcgen05.mma"}
SHARED_BYTES = {80: 99 << 10, 90: 227 << 10, 100: 227 << 10}


def hold(found: list[dict[str, Any]]) -> None:
    for one in found:
        wanted = "fma" if one["dtype"] == "fp32" else INSTRUCTIONS[one["capability"]]
        assert one["instruction"] == wanted, one
        assert one["copies_tiles"] == one["described"], one
        assert one["cubin_bytes"] > 0, one


@pytest.mark.parametrize("capability", [90, pytest.param(80, marks=pytest.mark.nightly)])
def test_each_kernel_compiles_to_the_instructions_of_its_gpu(
    tmp_path: Path, capability: int
) -> None:
    found = child("compiled", "some", str(capability), TRITON_CACHE_DIR=str(tmp_path))
    hold(found)
    assert sum(one["gluon"] for one in found) == (capability == 90)
    assert len({one["kernel"].split()[0] for one in found}) == 3
    # The last of each list, here those for 8.0, must run on the smallest GPUs.
    assert all(one["shared_bytes"] <= SHARED_BYTES[one["capability"]] for one in found)


@pytest.mark.nightly
def test_kernels_of_every_kind_of_problem_compile(tmp_path: Path) -> None:
    found = child("compiled", "every", "80", "90", "100", TRITON_CACHE_DIR=str(tmp_path))
    hold(found)
    assert all(one["shared_bytes"] <= SHARED_BYTES[100] for one in found)
