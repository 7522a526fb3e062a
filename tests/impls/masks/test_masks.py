"""Masks as their rules say, one pair at a time; and what is counted of them by formula, counted
again.
"""

from itertools import product
from typing import Any

import pytest
import torch

from attnbench.impls import Problem
from attnbench.impls.masks.counts import unmasked_keys, unmasked_pairs, unmasked_queries
from attnbench.impls.masks.rules import BLOCK, block_table, padded_length
from attnbench.impls.masks.tensors import (
    FULLY_MASKED_EVERY,
    computed_rows,
    fully_masked_rows,
    given,
    kept,
)

CPU = torch.device("cpu")
SHAPE: dict[str, Any] = {"batch": 1, "d_model": 16, "heads": 2}
LENGTHS = [(n, n) for n in (1, 2, 5, 64, 130, 200)] + [(1, 130), (5, 70), (60, 200), (70, 150)]


def small_problems() -> list[Problem]:
    """Every kind of mask, causal or not, where its rule places queries at keys; windows below, at
    and above the lengths.
    """
    found = []
    for (n_q, n_kv), causal, align in product(LENGTHS, (False, True), ("top_left", "bottom_right")):
        triangle = {"causal": causal, "causal_align": align if causal else ""}
        lengths = {"seq_len": n_q, "kv_seq_len": n_kv}
        found += [
            Problem(**SHAPE | lengths | triangle | {"batch": 5}, mask=mask)
            for mask in ("none", "padding", "random")
        ]
        if n_q == n_kv or causal:
            found += [
                Problem(**SHAPE | lengths | triangle, mask=mask, window=window)
                for mask in ("local", "strided", "blocks")
                for window in (1, 2, 3, 7, 64, 250)
            ]
    tall = {"seq_len": 40, "kv_seq_len": 25, "causal": True}
    return found + [
        Problem(**SHAPE | tall, causal_align=align, mask=m)
        for align in ("top_left", "bottom_right")
        for m in ("padding", "random")
    ]


def matrix(p: Problem) -> torch.Tensor:
    """[batch, seq_len, kv_seq_len]"""
    seen = kept(p, torch.arange(p.seq_len))
    return (
        torch.ones(1, 1, 1, dtype=torch.bool).expand(p.batch, p.seq_len, p.kv_seq_len)
        if seen is None
        else seen.expand(p.batch, p.seq_len, p.kv_seq_len)
    )


def rule(p: Problem, entry: int, i: int, j: int) -> bool:
    """The documented rules, once more and as plainly as can be; random apart."""
    own = i + p.causal_offset
    if p.causal and j > own:
        return False
    if p.mask == "padding":
        return j < padded_length(p, entry)
    if p.mask == "local":
        return abs(j - own) <= p.window
    if p.mask == "strided":
        return (j - own) % p.window == 0
    if p.mask == "blocks":
        return j // BLOCK in block_table(p)[own // BLOCK - p.causal_offset // BLOCK]
    return True


def test_formulas_count_what_the_matrix_has() -> None:
    for p in small_problems():
        whole = matrix(p)
        assert unmasked_pairs(p) == int(whole.sum()), p
        assert unmasked_queries(p) == int(whole.any(2).sum()), p
        assert unmasked_keys(p) == int(whole.any(1).sum()), p


@pytest.mark.parametrize("mask", ["padding", "local", "strided", "blocks"])
@pytest.mark.parametrize(
    ("causal", "n_q", "n_kv"), [(False, 70, 70), (True, 70, 70), (True, 9, 70)]
)
def test_a_mask_keeps_what_its_rule_says(mask: Any, causal: bool, n_q: int, n_kv: int) -> None:
    align = "bottom_right" if causal else ""
    lengths = {"seq_len": n_q, "kv_seq_len": n_kv, "batch": 5}
    p = Problem(
        **SHAPE | lengths,
        causal=causal,
        causal_align=align,
        mask=mask,
        window=0 if mask == "padding" else 3,
    )
    wanted = [
        [[rule(p, entry, i, j) for j in range(n_kv)] for i in range(n_q)]
        for entry in range(p.batch)
    ]
    assert matrix(p).tolist() == wanted


def test_a_part_of_a_mask_is_a_part_of_the_whole() -> None:
    for p in small_problems():
        rows = torch.arange(p.seq_len)[:: max(1, p.seq_len // 3)]
        part = kept(p, rows, [p.batch - 1])
        if part is not None:
            assert part.expand(1, len(rows), p.kv_seq_len).equal(matrix(p)[-1:, rows]), p


def test_a_random_mask_keeps_half_of_the_pairs_and_leaves_some_queries_blind() -> None:
    p = Problem(**SHAPE, seq_len=640, mask="random")
    whole = matrix(p)[0]
    blind = fully_masked_rows(p, torch.arange(640))
    assert blind is not None
    assert int(blind.sum()) == 640 // FULLY_MASKED_EVERY
    seeing = whole[~blind]
    for share in (seeing.double().mean(0), seeing.double().mean(1)):  # of each key, of each query
        assert 0.35 < float(share.min()) < float(share.max()) < 0.65
    assert abs(float(seeing.double().mean()) - 0.5) < 0.005


def test_a_mask_that_is_given_lets_blind_queries_see_everything() -> None:
    p = Problem(
        **SHAPE, seq_len=40, kv_seq_len=25, causal=True, causal_align="bottom_right", mask="random"
    )
    rows = computed_rows(p, CPU)
    matrix_given, blind = given(p, CPU), fully_masked_rows(p, rows)
    assert matrix_given is not None
    assert blind is not None
    assert rows[0] == 15
    assert matrix_given[blind].all()
    assert matrix_given[~blind].equal(matrix(p)[0, rows][~blind])


def test_only_a_mask_without_a_rule_is_given() -> None:
    assert [p.mask for p in small_problems() if given(p, CPU) is not None] == ["random"] * sum(
        p.mask == "random" for p in small_problems()
    )


def test_blocks_are_drawn_and_hold_their_own() -> None:
    p = Problem(**SHAPE, seq_len=64 * 40, mask="blocks")
    table = block_table(p)
    assert all(len(set(row)) == 4 and own in row for own, row in enumerate(table))
    assert (
        len({tuple(block - own for block in row) for own, row in enumerate(table)}) > 30
    )  # no pattern that moves along
    assert table == block_table(p)


def test_windows_left_out_take_the_usual_values() -> None:
    windows = {
        mask: Problem(**SHAPE, seq_len=1024, mask=mask).window
        for mask in ("none", "padding", "random", "local", "strided", "blocks")
    }  # type: ignore[arg-type]
    assert windows == {
        "none": 0,
        "padding": 0,
        "random": 0,
        "local": 128,
        "strided": 32,
        "blocks": 4,
    }
