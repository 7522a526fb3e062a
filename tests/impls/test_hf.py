"""The functions of the real package, called as its models call them."""

from functools import partial

import pytest
import torch

from attnbench.impls import Problem, hf, load, make_inputs, missing

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
DECODE = Problem(
    batch=1, seq_len=1, kv_seq_len=5, d_model=16, heads=2, causal=True, causal_align="top_left"
)
installed = pytest.mark.skipif(missing("hf") is not None, reason=str(missing("hf")))


def output(name: str, problem: Problem) -> torch.Tensor:
    with torch.no_grad():
        return load(name).prepare(problem, make_inputs(problem, CPU, 0), None)()


@installed
def test_it_is_their_functions_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    asked = []

    def theirs(
        layer: object,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: object,
        **others: object,
    ) -> tuple:
        asked.append(
            (
                layer.config._attn_implementation,
                layer.num_key_value_groups,
                tuple(k.shape),
                mask,
                others,
            )
        )
        return v.repeat_interleave(2, 1).transpose(1, 2), None

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "sdpa", theirs)
    problem = Problem(batch=1, seq_len=4, d_model=16, heads=2, kv_heads=1, causal=True)
    assert output("hf", problem).shape == (1, 2, 4, 8)
    assert asked == [
        (
            "sdpa",
            2,
            (1, 1, 4, 8),
            None,
            {"scaling": problem.scale, "dropout": 0.0, "is_causal": True},
        )
    ]


@installed
@pytest.mark.parametrize("name", ["hf:eager", "hf:sdpa"])
def test_one_query_that_sees_one_of_many_keys_is_masked(name: str) -> None:
    """Their sdpa takes a single query for decoding, which sees all; only a mask says that it does
    not.
    """
    assert torch.allclose(output(name, DECODE), output("naive", DECODE), atol=1e-6)


@installed
def test_flex_attention_is_compiled_for_each_shape_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from torch._dynamo.utils import counters
    from transformers.integrations.flex_attention import WrappedFlexAttention

    monkeypatch.setattr(WrappedFlexAttention, "_is_flex_compiled", False)
    monkeypatch.setattr(
        torch, "compile", partial(torch.compile, backend="eager")
    )  # no C++; what is counted is the same
    torch._dynamo.reset()
    for n_q in range(20, 32):
        problem = Problem(batch=1, seq_len=n_q, d_model=16, heads=2, causal=True)
        before = counters["stats"]["unique_graphs"]
        assert torch.allclose(
            output("hf:flex_attention", problem), output("naive", problem), atol=1e-5
        )
        assert counters["stats"]["unique_graphs"] == before + 1, (
            "the call after `prepare` compiled nothing"
        )
    torch._dynamo.reset()


def test_flash_attn_says_what_it_lacks_and_cannot_do(monkeypatch: pytest.MonkeyPatch) -> None:
    name, half = (
        "flash_attention_2",
        Problem(batch=1, seq_len=8, d_model=1024, heads=2, dtype="bf16"),
    )
    assert hf.unavailable(CPU, variant=name) == "flash-attn needs a CUDA device; this is cpu"
    monkeypatch.setattr(hf, "find_spec", lambda package: None)
    assert (
        hf.unavailable(CUDA, variant=name)
        == "needs flash_attn, which is not installed: pip install flash-attn"
    )
    assert (
        hf.why_not(half, CUDA, variant=name)
        == "heads are 512 wide; flash-attn has kernels for up to 256"
    )
    assert "not fp32" in str(hf.why_not(DECODE, CUDA, variant=name))
    assert (
        hf.why_not(
            Problem(batch=1, seq_len=8, d_model=64, heads=2, dtype="bf16", causal=True),
            CUDA,
            variant=name,
        )
        is None
    )
    corner = Problem(
        batch=1,
        seq_len=8,
        kv_seq_len=9,
        d_model=64,
        heads=2,
        dtype="bf16",
        causal=True,
        causal_align="top_left",
    )
    assert "starts from the top left" in str(hf.why_not(corner, CUDA, variant=name))
