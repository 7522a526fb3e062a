"""How long compiling took, as torch's compiler and Triton count it."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_cache

from attnbench.harness.measure.prepared_call import compile_time, make_tensors, prepare_call
from attnbench.impls import load
from attnbench.impls.problem import Problem

SMALL = Problem(batch=1, seq_len=8, d_model=8, heads=2)


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Its settings, where a listener is told of kernels."""
    knobs = ModuleType("triton.knobs")
    knobs.compilation = SimpleNamespace(listener=None)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton.knobs", knobs)
    return knobs.compilation  # type: ignore[attr-defined]


def told(us: int, *, cache_hit: bool = False) -> dict[str, Any]:
    return {"times": SimpleNamespace(total=us), "cache_hit": cache_hit, "src": "a kernel"}


def test_kernels_that_triton_compiles_are_added_and_those_of_its_cache_are_not(triton: Any) -> None:
    with compile_time() as found:
        for kernel in (told(2_000), told(1_500), told(900, cache_hit=True)):
            triton.listener(**kernel)
    assert found.ms == pytest.approx(3.5)
    assert triton.listener is None


def test_who_listened_before_still_hears(triton: Any) -> None:
    heard: list[Any] = []
    triton.listener = listener = lambda **kernel: heard.append(kernel["src"])
    with compile_time():
        triton.listener(**told(10))
    assert heard == ["a kernel"]
    assert triton.listener is listener


def test_what_torch_counts_holds_what_triton_did_for_it(
    triton: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = iter([1.0, 5.0])
    utils = SimpleNamespace(calculate_time_spent=lambda: {"total_wall_time": next(counted)})
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", utils)
    with compile_time() as found:
        triton.listener(**told(2_000_000))
    assert found.ms == pytest.approx(4_000.0)


def test_nothing_compiled_is_null_in_a_set_up() -> None:
    tensors = make_tensors(SMALL, torch.device("cpu"), 0)
    assert prepare_call(SMALL, load("sdpa"), tensors, None).setup_facts["compile_ms"] is None


@pytest.mark.nightly
@pytest.mark.long
def test_compiling_is_most_of_the_set_up_of_compiled_code_with_its_backward_pass() -> None:
    """With nothing in torch's cache on disk: what that holds is not compiled, nor counted."""
    found = {}
    for passes in ("forward", "forward+backward"):
        problem = Problem(batch=1, seq_len=8, d_model=8, heads=2, passes=passes)
        gradient = torch.ones(1, 2, 8, 4)
        tensors = make_tensors(problem, torch.device("cpu"), 0)
        with fresh_cache():
            facts = prepare_call(problem, load("compiled"), tensors, gradient).setup_facts
        assert 0 < facts["compile_ms"] <= facts["prepare_ms"]
        again = torch._dynamo.utils.calculate_time_spent()
        found[passes] = again.get("entire_backward_compile", 0.0)
    assert found["forward"] < found["forward+backward"]
