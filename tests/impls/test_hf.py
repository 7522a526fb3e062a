"""The functions of the real package, called as its models call them."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbench.impls import Problem, hf, load, make_inputs, missing

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
DECODE = Problem(
    batch=1, seq_len=1, kv_seq_len=5, d_model=16, heads=2, causal=True, causal_align="top_left"
)
installed = pytest.mark.skipif(missing("hf") is not None, reason=str(missing("hf")))


def output(name: str, problem: Problem) -> Tensor:
    with torch.no_grad():
        return load(name).prepare(problem, make_inputs(problem, CPU, 0), None)()


@installed
def test_it_is_their_functions_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    calls = []

    def theirs(
        layer: object, q: Tensor, k: Tensor, v: Tensor, mask: object, **others: object
    ) -> tuple:
        name, group = layer.config._attn_implementation, layer.num_key_value_groups
        calls.append((name, group, tuple(k.shape), mask, others))
        return v.repeat_interleave(2, 1).transpose(1, 2), None

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "sdpa", theirs)
    problem = Problem(batch=1, seq_len=4, d_model=16, heads=2, kv_heads=1, causal=True)
    assert output("hf", problem).shape == (1, 2, 4, 8)
    options = {"scaling": problem.scale, "dropout": 0.0, "is_causal": True}
    assert calls == [("sdpa", 2, (1, 1, 4, 8), None, options)]


@installed
@pytest.mark.parametrize("name", ["hf:eager", "hf:sdpa"])
def test_one_query_that_sees_one_of_many_keys_is_masked(name: str) -> None:
    """Their sdpa takes a single query for decoding, where it sees all keys, unless given a mask."""
    assert torch.allclose(output(name, DECODE), output("naive", DECODE), atol=1e-6)


@installed
@pytest.mark.parametrize("name", ["hf:eager", "hf:sdpa"])
@pytest.mark.parametrize(("more", "is_causal"), [(0, False), (0, True), (15, True)])
def test_a_window_is_the_one_of_models_that_have_it(name: str, more: int, is_causal: bool) -> None:
    problem = Problem(
        batch=2, seq_len=9, kv_seq_len=9 + more, d_model=16, heads=2, causal=is_causal,
        causal_align="bottom_right" if more else "", mask="local", window=3,
    )  # fmt: skip
    assert torch.allclose(output(name, problem), output("naive", problem), atol=1e-6)


@installed
def test_flash_attn_is_told_the_window_as_models_count_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    calls = []

    def theirs(_: object, q: Tensor, *others: object, **options: object) -> tuple[Tensor, None]:
        calls.append(options)
        return q.transpose(1, 2), None

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "flash_attention_2", theirs)
    problem = Problem(batch=1, seq_len=9, d_model=16, heads=2, causal=True, mask="local", window=3)
    attend = hf.attend_like(problem, "flash_attention_2", CPU)
    attend(*(torch.zeros(1, 2, 9, 8) for _ in range(3)))
    assert [(one["sliding_window"], one["is_causal"]) for one in calls] == [(4, True)]


@installed
def test_flex_attention_is_compiled_for_each_shape_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from torch._dynamo.utils import counters
    from transformers.integrations.flex_attention import WrappedFlexAttention

    monkeypatch.setattr(WrappedFlexAttention, "_is_flex_compiled", False)
    # without C++; the number of compilations is the same
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    torch._dynamo.reset()
    for n_q in range(20, 32):
        problem = Problem(batch=1, seq_len=n_q, d_model=16, heads=2, causal=True)
        before = counters["stats"]["unique_graphs"]
        ours, theirs = output("naive", problem), output("hf:flex_attention", problem)
        assert torch.allclose(theirs, ours, atol=1e-5)
        compiled = counters["stats"]["unique_graphs"] - before
        assert compiled == 1, "the call after `prepare` compiled nothing"
    torch._dynamo.reset()


def test_flash_attn_says_what_it_lacks_and_cannot_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def why_not(**changes: Any) -> str | None:
        sizes: dict[str, Any] = {"batch": 1, "seq_len": 8, "d_model": 64, "heads": 2}
        problem = Problem(**{**sizes, "dtype": "bf16", **changes})
        return hf.why_not(problem, CUDA, variant="flash_attention_2")

    def unavailable(device: torch.device) -> str | None:
        return hf.unavailable(device, variant="flash_attention_2")

    assert unavailable(CPU) == "flash-attn needs a CUDA device; this is cpu"
    monkeypatch.setattr(hf, "find_spec", lambda package: None)
    installing = "needs flash_attn, which is not installed: pip install flash-attn"
    assert unavailable(CUDA) == installing
    assert why_not(d_model=1024) == "heads are 512 wide; flash-attn has kernels for up to 256"
    assert why_not(dtype="fp32") == "flash-attn takes fp16 and bf16, not fp32"
    assert why_not(causal=True) is None
    corner = why_not(causal=True, kv_seq_len=9, causal_align="top_left")
    assert "starts from the top left" in str(corner)
