"""Masks against their rules, pair by pair; and counts by formula against counting."""

from itertools import product
from typing import Any

import torch

from attnbench.impls import Problem
from attnbench.impls.masks import MASKS, WINDOWED
from attnbench.impls.masks.random import FULLY_MASKED_EVERY
from attnbench.impls.problem import ALL_MASKS
from attnbench.impls.shared.mask_counts import unmasked_keys, unmasked_pairs, unmasked_queries
from attnbench.impls.shared.mask_tensors import (
    computed_rows,
    fully_masked_rows,
    mask_matrix,
    materialized_mask,
)
from tests.impls.conftest import BOTTOM_RIGHT

CPU = torch.device("cpu")
SHAPE: dict[str, Any] = {"batch": 1, "d_model": 16, "heads": 2}
LENGTHS = [(n, n) for n in (1, 2, 5, 64, 130, 200)] + [(1, 130), (5, 70), (60, 200), (70, 150)]


def small_problems() -> list[Problem]:
    """Every kind of mask that is possible, causal or not; windows below, at and above lengths."""
    found = []
    for (n_q, n_kv), align in product(LENGTHS, ("", "top_left", "bottom_right")):
        triangle = {"causal": bool(align), "causal_align": align}
        lengths = {"seq_len": n_q, "kv_seq_len": n_kv}
        found += [
            Problem(**SHAPE | lengths | triangle | {"batch": 5}, mask=mask)
            for mask in ALL_MASKS
            if mask not in WINDOWED
        ]
        if n_q == n_kv or align:
            found += [
                Problem(**SHAPE | lengths | triangle, mask=mask, window=window)
                for mask in WINDOWED
                for window in (1, 2, 3, 7, 64, 250)
            ]
    found += [
        Problem(**SHAPE, lengths=lengths, causal=causal, mask=mask, window=window)
        for lengths, causal in product(("q1", "q5_2q70_q3", "q9_q1"), (False, True))
        for mask, window in (("none", 0), ("local", 3), ("strided", 3))
    ]
    found += [
        Problem(**SHAPE, lengths="q5_2q3s70_4q1s9", causal=True, mask=mask, window=window)
        for mask, window in (("none", 0), ("local", 3), ("strided", 3))
    ]
    tall = {"seq_len": 40, "kv_seq_len": 25, "causal": True}
    return found + [
        Problem(**SHAPE | tall, causal_align=align, mask=m)
        for align in ("top_left", "bottom_right")
        for m in ("padding", "random")
    ]


def matrix(p: Problem) -> torch.Tensor:
    """[batch, seq_len, kv_seq_len]"""
    found = mask_matrix(p, torch.arange(p.seq_len))
    everything = torch.ones(1, 1, 1, dtype=torch.bool)
    return (everything if found is None else found).expand(p.batch, p.seq_len, p.kv_seq_len)


def test_the_rule_that_the_reference_asks_is_the_matrix_of_backends() -> None:
    for p in (one for one in small_problems() if one.mask != "none" and not one.lengths):
        queries, keys = torch.arange(p.seq_len)[:, None], torch.arange(p.kv_seq_len)
        own, whole = queries + p.causal_offset, matrix(p)
        for entry in range(p.batch):
            seen = MASKS[p.mask].rule(p, entry, own, keys)
            seen = seen & (keys <= own) if p.causal else seen
            assert torch.equal(whole[entry], seen.expand(p.seq_len, p.kv_seq_len)), p


def test_formulas_count_what_the_matrix_has() -> None:
    for p in small_problems():
        whole = matrix(p)
        assert unmasked_pairs(p) == int(whole.sum()), p
        assert unmasked_queries(p) == int(whole.any(2).sum()), p
        assert unmasked_keys(p) == int(whole.any(1).sum()), p


def test_a_random_mask_leaves_half_of_the_pairs_and_masks_some_queries_fully() -> None:
    p = Problem(**SHAPE, seq_len=640, mask="random")
    masked = fully_masked_rows(p, torch.arange(640))
    assert int(masked.sum()) == 640 // FULLY_MASKED_EVERY
    others = matrix(p)[0, ~masked].double()
    for share in (others.mean(0), others.mean(1)):  # of each key, of each query
        assert 0.35 < float(share.min()) < float(share.max()) < 0.65
    assert abs(float(others.mean()) - 0.5) < 0.005


def test_fully_masked_queries_see_everything_in_a_materialized_mask() -> None:
    p = Problem(**SHAPE, seq_len=40, kv_seq_len=25, mask="random", **BOTTOM_RIGHT)
    rows = computed_rows(p, CPU)
    materialized, masked = materialized_mask(p, CPU), fully_masked_rows(p, rows)
    assert rows[0] == 15
    assert materialized[masked].all()
    assert materialized[~masked].equal(matrix(p)[0, rows][~masked])
