"""Ragged batches: what a text of lengths says, and their work."""

from dataclasses import replace
from typing import Any

import pytest

from attnbench.harness.cases.costs import input_bytes, minimal_bytes, work_exps, work_flops
from attnbench.impls import Problem
from attnbench.impls.axes.lengths import (
    canonical,
    padding_ratio,
    sequences,
    short_name,
    starts,
    words,
)

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
