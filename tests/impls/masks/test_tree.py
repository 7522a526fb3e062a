"""Verifying a tree of drafted tokens: 40 random trees against a walk to the root, written out."""

from collections.abc import Callable
from math import sqrt
from random import Random
from typing import Any

import pytest
import torch

from attnbench.impls import Problem, make_inputs
from attnbench.impls.reference import reference
from tests.budget import first

CPU = torch.device("cpu")


def drawn(seed: int) -> Problem:
    random = Random(seed)
    drafted = random.randint(1, 40)
    cached = random.choice([0, 1, random.randint(2, 60)])
    align: Any = "bottom_right" if cached else ""
    return Problem(
        batch=random.choice([1, 2]),
        seq_len=drafted,
        kv_seq_len=drafted + cached,
        d_model=16,
        heads=2,
        kv_heads=random.choice([1, 2]),
        causal=bool(cached) or random.random() < 0.5,
        causal_align=align,
        mask="tree",
        window=random.randint(1, 5),
        passes="forward+backward",
    )


def path(token: int, children: int) -> list[int]:
    """From a drafted token to the root."""
    found = [token]
    while found[-1]:
        found.append((found[-1] - 1) // children)
    return found


@pytest.mark.parametrize("seed", first(10, range(40)))
def test_a_drafted_token_sees_the_cache_and_its_path_to_the_root(
    seed: int, make_case: Callable
) -> None:
    p = drawn(seed)
    inputs = make_inputs(p, CPU, seed)
    exact = reference(p, inputs, None, torch.arange(p.seq_len)).detach()
    q, k, v = (x.detach().double() for x in inputs)
    cached = p.kv_seq_len - p.seq_len
    for entry in range(p.batch):
        for head in range(p.heads):
            shared = head * p.kv_heads // p.heads
            for token in range(p.seq_len):
                seen = [*range(cached), *(cached + one for one in path(token, p.window))]
                scores = k[entry, shared, seen] @ q[entry, head, token] / sqrt(p.d_k)
                wanted = (scores.exp() / scores.exp().sum()) @ v[entry, shared, seen]
                assert torch.allclose(exact[entry, head, token], wanted, rtol=1e-9, atol=1e-11)
    case = make_case(p)
    for name in ("naive", "fused", "sdpa"):
        assert case.worst_ratio(case.backend(name)) <= 2, name
