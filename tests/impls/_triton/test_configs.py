from itertools import product
from typing import Any

import pytest

from attnbench.harness.run.group import COMPILE_TIMES
from attnbench.harness.scenario import load
from attnbench.harness.scenario.selection import Selection, select
from attnbench.impls import Problem
from attnbench.impls._triton.configs import (
    KERNELS,
    SPILLS_BY_3_6,
    Kernel,
    candidates,
    why_not_gluon,
    without_descriptors,
)


@pytest.mark.parametrize(
    ("capability", "item_bytes"),
    [((8, 0), 2), ((8, 9), 2), ((9, 0), 2), ((10, 0), 2), ((12, 0), 2), ((9, 0), 4)],
)
def test_every_problem_has_candidates_that_its_gpu_can_run(
    capability: tuple[int, int], item_bytes: int
) -> None:
    widths, lengths = (1, 16, 64, 65, 128, 200, 256), (1, 16, 17, 10**6)
    for width, n_q, causal, kernel in product(widths, lengths, (False, True), KERNELS):
        found = candidates(
            kernel,
            capability=capability,
            item_bytes=item_bytes,
            width=width,
            n_q=n_q,
            causal=causal,
        )
        assert 1 <= len(found) <= 6
        assert not found[-1].descriptors  # the smallest, for short sequences, must run everywhere
        for config in found:
            other = without_descriptors(kernel, config, width) if config.descriptors else config
            assert other in found
            assert not other.descriptors
            assert config.descriptors <= (capability >= (9, 0))
            assert config.specialize <= (config.descriptors and kernel == "forward")
            if n_q <= 16 and kernel != "grad_kv":
                assert config.block_q == 16


def test_warps_are_specialized_by_triton_on_10_alone() -> None:
    def specialized(capability: tuple[int, int], triton: str, *, causal: bool) -> list[int]:
        found = candidates(
            "forward",
            capability=capability,
            item_bytes=2,
            width=100,
            n_q=512,
            causal=causal,
            triton=triton,
        )
        return [place for place, config in enumerate(found, 1) if config.specialize]

    for triton in ("3.6.0", "3.9.0", "", "main"):
        assert specialized((8, 0), triton, causal=False) == []
        assert specialized((9, 0), triton, causal=False) == []
        assert specialized((10, 0), triton, causal=False) == [2]
    # Their only loop masks every tile.
    assert specialized((10, 0), "3.6.0", causal=True) == [5]


@pytest.mark.parametrize(("triton", "is_listed"), [("3.6.0", False), ("3.9.0", True)])
def test_a_configuration_that_one_version_spills_is_not_listed_for_it(
    triton: str, is_listed: bool
) -> None:
    problem = {"item_bytes": 2, "width": 128, "n_q": 512, "causal": True, "triton": triton}
    found = candidates("grad_kv", capability=(9, 0), **problem)
    assert (SPILLS_BY_3_6 in found) == is_listed


def test_the_kernel_in_gluon_is_offered_where_it_works() -> None:
    usual: dict[str, Any] = {
        "capability": (9, 0),
        "item_bytes": 2,
        "width": 128,
        "n_q": 1024,
        "causal": True,
    }

    def offered(kernel: Kernel = "forward", **changes: Any) -> bool:
        return any(config.gluon for config in candidates(kernel, **usual | changes))

    assert offered()
    assert offered(width=64, causal=False, n_q=17)
    assert not offered(beyond="key mask")
    assert not offered("grad_q")
    for changes in (
        {"capability": (8, 0)},
        {"capability": (10, 0)},
        {"item_bytes": 4},
        {"width": 129},
        {"width": 32},
        {"n_q": 16},
    ):
        assert not offered(**changes)
        asked = {"beyond": "", **usual, **changes}
        del asked["causal"]
        assert why_not_gluon(**asked)


# Of one kernel: the most that compiling and reading it took of a processor, by Triton 3.6 and 3.9,
# without the kernel in Gluon, which took 4 s.
KERNEL_S = 2.0
SWEEP = [
    case.problem
    for case in select(load("kernel_sweep"), "cuda", Selection()).cases
    if case.backend == "triton"
]


def to_compile(problem: Problem, triton: str) -> set[tuple[Any, ...]]:
    """The kernels that tuning compiles, each of which nvdisasm reads once."""
    p = problem
    shape = {"item_bytes": 2, "width": p.d_k, "n_q": p.seq_len, "causal": p.causal}
    return {
        (kernel, config, p.d_k, p.causal)
        for kernel in KERNELS[: None if p.backward else 1]
        for config in candidates(kernel, capability=(9, 0), triton=triton, **shape)
    }


@pytest.mark.parametrize("triton", ["3.6.0", "3.9.0"])
def test_a_kind_of_kernel_sweep_is_compiled_in_time_on_a_single_core(triton: str) -> None:
    limit_s = load("kernel_sweep").limits.timeout_s * COMPILE_TIMES
    for problem in SWEEP:
        kernels = to_compile(problem, triton)
        assert len(kernels) <= 14
        assert len(kernels) * KERNEL_S <= limit_s / 4
