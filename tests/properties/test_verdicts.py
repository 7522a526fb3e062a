"""Verdicts of comparisons are antisymmetric, and do not depend on the unit of time."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnbench.harness.stats.contrasts import Spread
from attnbench.reports.comparison.verdict import CaseVerdict, Rules, case_verdicts
from attnbench.reports.data.row_groups import Row
from tests.made_runs import PLANNED, loaded, timed

OPPOSITE = {"slower": "faster", "faster": "slower", "more": "less", "less": "more"}
OPPOSITE |= {"broken": "mended", "mended": "broken"}
SIDES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 1 << 20),
        "ratio": st.sampled_from([0.5, 0.9, 0.97, 1.0, 1.02, 1.1, 2.0]),
        "processes": st.sampled_from([1, 5]),
        "contended_blocks": st.sampled_from([0, 20]),
        "peak_bytes": st.sampled_from([100, 101]),
    }
)
RULES = st.sampled_from(
    [
        Rules(),
        Rules(baseline="fused"),
        Rules(margin_ratio=0.01),
    ]
)


def side(*, seed: int, ratio: float, scale: float = 1.0, **changes: Any) -> Row:
    of = timed(PLANNED[0], 10.0 * ratio * scale, Random(seed), **changes)
    return loaded(of, between_runs=Spread(sd=0.005, degrees=10))


def verdicts(base: Row, new: Row, rules: Rules) -> dict[str, CaseVerdict]:
    return {one.metric: one for one in case_verdicts([(base, new)], rules)}


def said(of: CaseVerdict) -> tuple[Any, ...]:
    return of.verdict, of.reasons, of.ratio and round(of.ratio.value, 9)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(one=SIDES, other=SIDES, rules=RULES)
def test_exchanging_both_sides_gives_the_opposite(
    one: dict[str, Any], other: dict[str, Any], rules: Rules
) -> None:
    forth = verdicts(side(**one), side(**other), rules)
    back = verdicts(side(**other), side(**one), rules)
    assert set(forth) == set(back)
    for metric, found in forth.items():
        mirrored = back[metric]
        assert mirrored.verdict == OPPOSITE.get(found.verdict, found.verdict), metric
        assert set(mirrored.reasons) == set(found.reasons)
        if metric == "latency" and found.ratio and mirrored.ratio:
            assert mirrored.ratio.value == pytest.approx(1 / found.ratio.value)
    scaled = verdicts(side(**one, scale=7e-3), side(**other, scale=7e-3), rules)  # another unit
    assert {name: said(one) for name, one in scaled.items()} == {
        name: said(one) for name, one in forth.items()
    }
