"""reports/heads/maps.py: what a head looks at, by its map."""

import pytest

from attnbench.reports.heads.maps import favourite, tokens_attended

N = 6


def shifted(back: int) -> list[list[float]]:
    """A causal map with all weight so many places back."""
    return [[float(key == max(0, query - back)) for key in range(N)] for query in range(N)]


def test_a_map_looks_where_most_of_its_weight_is() -> None:
    # The first queries see themselves only, as where a task asks them nothing.
    assert favourite(shifted(0)[: N - 2] + shifted(3)[N - 2 :]) == (3, 1.0)
    assert tokens_attended(shifted(1)) == 1
    assert tokens_attended([[1 / N] * N] * N) == pytest.approx(N)
