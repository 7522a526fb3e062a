"""Studies of what serving adds: quantized keys and values, and sequences in a batch."""

from collections.abc import Callable
from math import sqrt
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from attnbench.harness.studies import batch_invariance, kv_quantization
from attnbench.impls import Problem, load

CPU = torch.device("cpu")
SMALL = Problem(batch=1, seq_len=3, kv_seq_len=200, d_model=64, heads=2, d_k=64, d_v=64)


def test_the_error_of_quantized_values_is_that_of_rounding_to_equal_steps() -> None:
    found = [one for one in kv_quantization.run(SMALL, CPU, 0) if one["stored"] == "values"]
    (int8,) = (one for one in found if one["kv_dtype"] == "int8" and not one["keys_have_outliers"])
    largest = torch.randn(20_000, 64, generator=torch.Generator().manual_seed(1)).abs().amax(-1)
    # a step is 1/127 of a row's largest number; rounding to steps is off by 1/sqrt(12) of one
    expected = float(largest.square().mean().sqrt()) / 127 / sqrt(12)
    assert int8["error_l2_ratio"] == pytest.approx(expected, rel=0.1)
    assert int8["error_l2_ratio_low"] < int8["error_l2_ratio"] < int8["error_l2_ratio_high"]


def test_outliers_of_keys_harm_int8_more_than_fp8() -> None:
    keys = [one for one in kv_quantization.run(SMALL, CPU, 0) if one["stored"] == "keys"]
    errors = {(one["kv_dtype"], one["keys_have_outliers"]): one["error_l2_ratio"] for one in keys}
    assert errors["int8", True] > 3 * errors["int8", False]
    assert errors["fp8", True] < 2 * errors["fp8", False]
    assert errors["fp8", False] > 2 * errors["int8", False]


def depends_on(change: Callable[[Problem, int], float]) -> Any:
    """A backend whose outputs are larger by `change` of the problem and of its calls so far."""
    exact, calls = load("fused"), [0]

    def prepare(problem: Problem, *tensors: Any) -> Callable[[], torch.Tensor]:
        calls[0] += 1
        call, factor = exact.prepare(problem, *tensors), 1 + change(problem, calls[0])
        return lambda: call() * factor

    return SimpleNamespace(name="own", context=exact.context, prepare=prepare)


@pytest.mark.parametrize(
    ("change", "again", "batch"),
    [
        (lambda problem, calls: 0.0, 0.0, 0.0),
        (lambda problem, calls: 0.01 * (problem.batch == 1), 0.0, 0.01),
        (lambda problem, calls: 0.01 * (calls == 2), 0.01, 0.0),
    ],
)
def test_it_is_told_how_far_off_another_call_is_and_one_alone(
    monkeypatch: pytest.MonkeyPatch, change: Any, again: float, batch: float
) -> None:
    monkeypatch.setattr(batch_invariance, "exact_backends", lambda *_: [depends_on(change)])
    found, *costs = batch_invariance.run(SMALL, CPU, 0, process=1)
    assert len(costs) == (batch > 0)
    errors = found["again_error_l2_ratio"], found["batch_error_l2_ratio"]
    assert errors == pytest.approx((again, batch), rel=1e-3)


def test_a_call_for_each_sequence_is_held_against_one_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timers = [[6.0, 6.2, 6.1, 6.1], [2.0, 2.0, 2.0, 2.0]]  # ms, of each block
    made: list[torch.Tensor] = []

    class Clock:
        def time_ms(self, call: Callable[[], torch.Tensor]) -> float:
            made.append(call())
            return 1.0

        def timer(self, call: Any, call_ms: float) -> Any:
            blocks = iter(timers.pop(0))
            return SimpleNamespace(
                sample=lambda times: SimpleNamespace(block_ms=[next(blocks)] * times)
            )

    own = depends_on(lambda problem, _: 0.01 * (problem.batch == 1))
    monkeypatch.setattr(batch_invariance, "exact_backends", lambda *_: [own])
    monkeypatch.setattr(batch_invariance, "clock_for", lambda _: Clock())
    _, cost = batch_invariance.run(SMALL, CPU, 0, process=3)
    each, batch, *_ = made
    assert torch.allclose(each, 1.01 * batch)
    assert cost["alone_ratio"] == pytest.approx(3.05, rel=1e-3)
    assert (cost["process"], cost["blocks"]) == (3, 4)
    # the batch's output and the other by which it is multiplied; alone, one sequence at a time
    assert 0 < cost["alone_peak_bytes"] < 2 * cost["batch_peak_bytes"]


def test_equal_outputs_have_equal_digests_and_others_have_not() -> None:
    first, second, other = (
        {
            one["backend"]: one["output_digest"]
            for one in batch_invariance.run(*of, process=1)
            if one["output_digest"]
        }
        for of in ((SMALL, CPU, 0), (SMALL, CPU, 0), (SMALL, CPU, 1))
    )
    assert first == second
    assert not set(first.values()) & set(other.values())
    assert {"naive", "fused", "sdpa"} <= first.keys()
