"""Sparse backends: equal to dense ones at the edges of blocks, bytes that grow with N, refusals."""

from functools import partial
from itertools import product
from typing import Any

import pytest
import torch

from attnbench.impls import Problem, load, make_inputs
from tests.harness.measure.test_peak_memory import weighed
from tests.impls.conftest import BOTTOM_RIGHT, shaped

CPU = torch.device("cpu")
BACKENDS = {"sparse_local": "local", "sparse_strided": "strided", "sparse_random": "blocks"}
SHAPE: dict[str, Any] = {"batch": 2, "d_model": 8, "heads": 2}
LENGTHS = [(n, n) for n in (1, 2, 5, 63, 64, 65, 130, 200)]
LENGTHS += [(1, 130), (5, 70), (60, 200), (70, 150)]


def edges(mask: str) -> list[Problem]:
    """Lengths around multiples of a block, windows of one, at and above them; causal problems also
    with more keys than queries.
    """
    found = []
    for (n_q, n_kv), causal, window in product(LENGTHS, (False, True), (1, 64, 70)):
        if not causal and n_q != n_kv:
            continue
        for align in ("top_left", "bottom_right") if causal and n_q < n_kv else ("",):
            lengths = {"seq_len": n_q, "kv_seq_len": n_kv, "kv_heads": 1 + window % 2, "d_v": 5}
            masks = {"causal": causal, "causal_align": align, "mask": mask, "window": window}
            found.append(Problem(**SHAPE, **lengths, **masks, passes="forward+backward"))
    return found


@pytest.mark.parametrize(("name", "mask"), BACKENDS.items())
def test_the_pairs_are_those_of_the_mask_wherever_blocks_end(name: str, mask: str) -> None:
    for problem in edges(mask):
        inputs = make_inputs(problem, CPU, seed=1)
        outputs = [load(backend).prepare(problem, inputs, None)() for backend in (name, "fused")]
        gradient = torch.randn(outputs[0].shape, generator=torch.Generator().manual_seed(2))
        results = [[output, *torch.autograd.grad(output, inputs, gradient)] for output in outputs]
        for ours, dense in zip(*results, strict=True):
            message = partial("{}: {}".format, problem)
            torch.testing.assert_close(ours, dense, rtol=1e-4, atol=1e-5, msg=message)


@pytest.mark.parametrize(("name", "mask"), BACKENDS.items())
def test_other_masks_are_refused_with_the_one_that_is_computed(name: str, mask: str) -> None:
    for other in ("none", "padding", "random", *(set(BACKENDS.values()) - {mask})):
        reason = f"computes mask {mask} only, and the mask is {other}; set mask: {mask}"
        assert load(name).why_not(Problem(**SHAPE, seq_len=16, mask=other), CPU) == reason
    assert load(name).why_not(Problem(**SHAPE, seq_len=16, mask=mask), CPU) is None


@pytest.mark.parametrize(("name", "mask"), BACKENDS.items())
@pytest.mark.parametrize("passes", ["forward", "forward+backward"])
def test_bytes_grow_with_the_pairs_and_not_with_n_squared(
    name: str, mask: Any, passes: Any
) -> None:
    def peak(n: int) -> int:
        problem = Problem(batch=1, seq_len=n, d_model=128, heads=2, mask=mask, passes=passes)
        return weighed(name, problem).peak_bytes

    short, long = peak(1 << 10), peak(1 << 12)
    most = 4 ** (1.5 if mask == "strided" else 1.0)
    assert long <= 1.01 * most * short
    if mask != "strided":
        assert peak(1 << 13) - long == pytest.approx(2 * (long - peak(1 << 11)), rel=1e-3)


@pytest.mark.parametrize(("name", "mask"), [("sparse_local", "local"), ("sparse_random", "blocks")])
def test_a_decoding_query_copies_only_its_own_keys(name: str, mask: Any) -> None:
    problem = shaped(1, 1, 64, 1, kv_seq_len=1 << 16, mask=mask, **BOTTOM_RIGHT)
    assert weighed(name, problem).peak_bytes < (1 << 16) * 64 * 4 / 8  # an eighth of the keys
