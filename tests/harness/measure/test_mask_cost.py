"""What a mask costs alone."""

import pytest
import torch

from attnbench.harness.measure.clock import clock_for
from attnbench.harness.measure.kept_memory import mask_cost
from attnbench.impls import Problem, load, sdpa

CPU = torch.device("cpu")
SHAPE = {"batch": 1, "d_model": 16, "heads": 2}
N = 400


def cost(name: str, **more: object) -> dict[str, float | None]:
    return mask_cost(Problem(**SHAPE | more), load(name), CPU, clock_for(CPU))


@pytest.mark.parametrize(
    ("name", "pairs", "most_bytes"),
    [
        ("naive", N * N, 4),  # bytes of each pair: booleans alone
        ("fused", N * N, 4),
        ("sdpa", N * N, 4),
        ("padded", 4 * 250 * 250, 4),
        pytest.param("flex", N * N, 24, marks=pytest.mark.long),
    ],
)
def test_a_mask_of_all_pairs_has_a_time_and_the_bytes_of_its_pairs(
    name: str, pairs: int, most_bytes: int
) -> None:
    if why := load(name).unavailable(CPU):
        pytest.skip(why)
    found = cost(name, lengths="q250_q70_2q40", causal=True)
    assert found["mask_build_ms"] > 0
    assert pairs <= found["mask_build_peak_bytes"] <= most_bytes * pairs + (1 << 17)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("naive", {"seq_len": N}),
        ("sdpa", {"seq_len": N, "causal": True}),
        ("padded:maskless", {"lengths": "q250_q150", "causal": True}),
        ("sequence_loop", {"lengths": "q250_q150", "causal": True}),
    ],
)
def test_what_builds_no_mask_has_no_cost_of_one(name: str, more: dict[str, object]) -> None:
    assert cost(name, **more) == {}


@pytest.mark.parametrize(
    ("variant", "builds"), [("", False), ("flash", False), ("efficient", True)]
)
def test_sdpa_builds_no_triangle_that_a_kernel_has_built_in(
    variant: str, builds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flash on CUDA, which has the triangle from the lower right."""
    monkeypatch.setattr("attnbench.impls.shared.sdpa_kernels.refusal", lambda *_: None)
    monkeypatch.setattr("attnbench.impls.sdpa.matrix", lambda *_: torch.ones(1))
    later = Problem(**SHAPE, seq_len=8, kv_seq_len=64, causal=True, causal_align="bottom_right")
    mask = sdpa.build_mask(later, torch.device("cuda"), variant=variant)
    assert (mask is not None) == builds
