"""Where heads look: shares of patterns whose values are known."""

import pytest
import torch

from attnbench.harness.heads.findings import CheckpointHeads
from attnbench.harness.heads.studies.checkpoint_heads import (
    KINDS,
    NEAR_TOKENS,
    even_shares,
    shares_of,
)

N = 10
FAR = N - NEAR_TOKENS - 2  # queries that have a far token


def looking(back: int) -> torch.Tensor:
    """All weight so many tokens back, or on the first."""
    pattern, place = torch.zeros(N, N), torch.arange(N)
    pattern[place, (place - back).clamp_min(0)] = 1
    return pattern


@pytest.mark.parametrize(
    ("back", "kind"), [(0, "itself"), (1, "near"), (4, "near"), (5, "far"), (N, "first")]
)
def test_a_head_that_always_looks_one_way_has_all_its_weight_there(back: int, kind: str) -> None:
    both = torch.stack([looking(back), looking(0)])[None].expand(3, 2, N, N)
    found = {name: of[0] for name, of in shares_of(both).items()}
    assert found == {name: float(name == kind) for name in KINDS}


def test_even_shares_are_those_of_counted_tokens() -> None:
    seen = [query + 1 for query in range(NEAR_TOKENS + 2, N)]
    one = sum(1 / many for many in seen) / FAR
    assert even_shares(N) == pytest.approx([one, 4 * one, one, 1 - 6 * one])
    assert even_shares(NEAR_TOKENS + 2) == [], "no query has a far token"


def test_a_finding_has_a_share_of_each_kind() -> None:
    assert {f"{kind}_share" for kind in KINDS} < CheckpointHeads.model_fields.keys()
