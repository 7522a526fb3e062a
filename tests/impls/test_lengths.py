"""Ragged batches: what a text of lengths says, and every backend that computes them."""

from dataclasses import replace
from math import sqrt
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbench.harness.cases.costs import input_bytes, minimal_bytes, work_exps, work_flops
from attnbench.impls import Problem, load, make_inputs
from attnbench.impls.axes.lengths import (
    canonical,
    padding_ratio,
    sequences,
    short_name,
    starts,
    words,
)
from attnbench.impls.reference import reference
from tests.impls.conftest import MASKED

CPU = torch.device("cpu")
SHAPE: dict[str, Any] = {"batch": 1, "d_model": 32, "heads": 4}
LONG = "_".join(f"q{n}" for n in range(1, 41))


@pytest.mark.parametrize(
    ("text", "batch", "one_text"),
    [
        ("q2k", [(2048, 2048)], "q2k"),
        ("8q1s1k", [(1, 1024)] * 8, "8q1s1k"),
        ("2q1K_32q1s1k", [(1024, 1024)] * 2 + [(1, 1024)] * 32, "2q1k_32q1s1k"),
        ("q4s4_q4_q3", [(4, 4), (4, 4), (3, 3)], "2q4_q3"),
        ("q1024s2048_1q1m", [(1024, 2048), (1 << 20, 1 << 20)], "q1ks2k_q1024k"),
    ],
)
def test_lengths_are_read_as_by_vllm_and_have_one_text(
    text: str, batch: list[tuple[int, int]], one_text: str
) -> None:
    assert [*sequences(text)] == batch
    assert canonical(sequences(text)) == canonical(batch) == one_text
    assert [*sequences(one_text)] == batch


def test_a_problem_has_the_sums_and_the_corner_of_its_lengths() -> None:
    p = Problem(**SHAPE, lengths="q5_1q5_2q1s9", causal=True)
    assert (p.lengths, p.seq_len, p.kv_seq_len) == ("2q5_2q1s9", 12, 28)
    assert (p.causal_align, p.empty_rows) == ("bottom_right", 0)
    assert replace(p, passes="backward").lengths == p.lengths
    assert starts(p.lengths) == ((0, 5, 10, 11, 12), (0, 5, 10, 19, 28))


def test_long_lengths_have_a_short_name_and_say_how_much_is_padding() -> None:
    assert short_name("2q2k_32q1s1k") == words("2q2k_32q1s1k") == "2q2k_32q1s1k"
    assert short_name(LONG) != short_name(LONG + "_q7")
    assert short_name(LONG).startswith("40seq")
    assert words(LONG) == "40 sequences of 1 to 40 tokens, 49% padding"
    assert padding_ratio("4q7") == 0
    assert padding_ratio("q30_q10") == pytest.approx(1 - 40 / 60)
    assert padding_ratio("q4_q1s8") == pytest.approx(1 - (5 + 12) / (2 * (4 + 8)))


def test_the_work_is_that_of_the_sequences_one_by_one() -> None:
    p = Problem(**SHAPE, kv_heads=2, lengths="q40_3q1s19_q4s9", causal=True)
    one_by_one = [(40, 40, 40 * 41 // 2), *[(1, 19, 19)] * 3, (4, 9, 6 + 7 + 8 + 9)]
    pairs = sum(count for _, _, count in one_by_one)
    queries, keys = (sum(sizes) for sizes in list(zip(*one_by_one, strict=True))[:2])
    assert work_flops(p) == 4 * 4 * pairs * 8
    assert work_exps(p) == 4 * pairs
    assert input_bytes(p) == 4 * 8 * (4 * queries + 2 * 2 * keys)
    assert minimal_bytes(p) == 4 * 8 * (2 * 4 * queries + 2 * 2 * keys)


def by_hand(p: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of each sequence cut out, in float64, by loops over heads and queries."""
    output = torch.zeros(1, p.heads, p.seq_len, p.d_v, dtype=torch.float64)
    first_q = first_k = 0
    for n_q, n_kv in sequences(p.lengths):
        for head in range(p.heads):
            shared = head * p.kv_heads // p.heads
            keys, values = (x[0, shared, first_k : first_k + n_kv].double() for x in (k, v))
            for i in range(n_q):
                own = n_kv - n_q + i
                last = own if p.causal else n_kv - 1
                first = max(0, own - p.window) if p.mask == "local" else 0
                last = min(last, own + p.window) if p.mask == "local" else last
                seen = torch.arange(first, last + 1)
                if p.mask == "strided":
                    seen = seen[(seen - own) % p.window == 0]
                scores = keys[seen] @ q[0, head, first_q + i].double() / sqrt(p.d_k)
                weights = scores.exp() / scores.exp().sum()
                output[0, head, first_q + i] = weights @ values[seen]
        first_q, first_k = first_q + n_q, first_k + n_kv
    return output


@pytest.mark.parametrize("name", [name for name, one in MASKED.items() if one.lengths])
def test_the_reference_is_a_loop_by_hand(name: str) -> None:
    p = MASKED[name]
    inputs = make_inputs(p, CPU, 0)
    exact = reference(p, inputs, None, torch.arange(p.seq_len))
    assert torch.allclose(exact, by_hand(p, *inputs), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["padded", "sequence_loop", "varlen"])
def test_backends_for_ragged_batches_refuse_others_in_a_line(name: str) -> None:
    device = torch.device("cuda" if name == "varlen" else "cpu")
    backend = load(name)
    plain = backend._asked("why_not", Problem(**SHAPE, seq_len=8), device)
    assert plain.startswith("needs lengths")


def test_a_backend_that_does_not_know_lengths_says_so() -> None:
    p = Problem(**SHAPE, lengths=LONG)
    said = load("sparse_local").why_not(replace(p, mask="local"), CPU)
    assert said.startswith(f"does not compute lengths {LONG[:40]}; see flex, fused, ")


@pytest.mark.parametrize("asks_for_gqa", [False, True])
def test_varlen_gets_packed_tokens_and_where_each_sequence_begins(
    monkeypatch: pytest.MonkeyPatch, asks_for_gqa: bool
) -> None:
    """The signatures of torch 2.11 and of later ones, with a loop in place of the kernel, which
    needs a GPU.
    """
    varlen = pytest.importorskip("torch.nn.attention.varlen")
    asked: list[dict[str, Any]] = []

    def loop(query: Tensor, key: Tensor, value: Tensor, **more: Any) -> Tensor:
        asked.append(more)
        packed = (x.transpose(0, 1)[None] for x in (query, key, value))
        sizes = zip(more["cu_seq_q"].diff().tolist(), more["cu_seq_k"].diff().tolist(), strict=True)
        left, right = more["window_size"]
        p = Problem(
            batch=1,
            d_model=32,
            heads=query.shape[1],
            kv_heads=key.shape[1],
            lengths=canonical(sizes),
            causal=right == 0,
            mask="none" if left < 0 else "local",
            window=max(left, 0),
        )
        return by_hand(p, *packed)[0].transpose(0, 1).float()

    def of_2_11(
        query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor,
        max_q: int, max_k: int, *, scale: float, window_size: tuple[int, int],
    ) -> Tensor:  # fmt: skip
        return loop(
            query, key, value, cu_seq_q=cu_seq_q, cu_seq_k=cu_seq_k, max_q=max_q, max_k=max_k,
            scale=scale, window_size=window_size,
        )  # fmt: skip

    def later(*tensors: Tensor, enable_gqa: bool = False, **more: Any) -> Tensor:
        return loop(*tensors, enable_gqa=enable_gqa, **more)

    monkeypatch.setattr(varlen, "varlen_attn", later if asks_for_gqa else of_2_11)
    for more in ({"causal": True}, {"causal": True, "mask": "local", "window": 3}):
        p = Problem(**SHAPE, kv_heads=2, lengths="q7_2q1s9", **more)
        inputs = make_inputs(p, CPU, 0)
        output = load("varlen").prepare(p, inputs, None)()
        exact = reference(p, inputs, None, torch.arange(p.seq_len))
        assert torch.allclose(output.double(), exact, atol=1e-6)
    assert asked[0]["cu_seq_q"].tolist() == [0, 7, 8, 9]
    assert asked[0]["cu_seq_k"].dtype == torch.int32
    assert (asked[0]["max_q"], asked[0]["max_k"]) == (7, 9)
    assert asked[0].get("enable_gqa", False) == asks_for_gqa


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"dtype": "fp32"}, "takes bf16 and fp16 only"),
        ({"dtype": "bf16", "d_v": 16}, "needs one width"),
        ({"dtype": "bf16", "d_k": 4, "d_v": 4}, "a multiple of 8"),
        ({"dtype": "bf16"}, None),
    ],
)
def test_varlen_says_what_the_kernel_cannot(more: dict[str, Any], said: str | None) -> None:
    from attnbench.impls import varlen

    found = varlen.why_not(Problem(**SHAPE, lengths="q5_q4", **more), torch.device("cuda"))
    assert (found is None) if said is None else (said in str(found))
    assert "CUDA only" in str(varlen.unavailable(CPU))
