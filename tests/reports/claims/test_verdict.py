"""reports/claims/verdict.py: how verdicts are combined."""

import pytest

from attnbench.reports.claims.verdict import (
    ClaimVerdict,
    above,
    agreed,
    below,
    by_interval,
    jointly,
    longer_text,
    needed,
)

OUTCOMES: list[tuple[list[ClaimVerdict], ClaimVerdict, ClaimVerdict]] = [
    ([], "not run", "not run"),
    (["supported", "supported"], "supported", "supported"),
    (["supported", "refuted"], "depends", "refuted"),
    (["supported", "not decided"], "not decided", "not decided"),
    (["supported", "not run"], "supported", "not decided"),
    (["refuted", "not decided"], "refuted", "refuted"),
    (["supported", "refuted", "not decided"], "depends", "refuted"),
    (["not run", "not run"], "not run", "not run"),
]


@pytest.mark.parametrize(("verdicts", "side_by_side", "together"), OUTCOMES)
def test_tests_of_a_general_statement_and_halves_of_one_claim(
    verdicts: list[ClaimVerdict], side_by_side: ClaimVerdict, together: ClaimVerdict
) -> None:
    assert agreed(verdicts) == side_by_side
    assert jointly(verdicts) == together


def test_an_interval_that_does_not_exist_decides_nothing() -> None:
    assert by_interval(float("nan"), float("nan"), (0.9, 1.1)) == "not decided"


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0.1, 0.2, "supported"),
        (0.0, 0.0, "refuted"),  # a tie is not more
        (-0.2, 0.0, "refuted"),
        (0.0, 0.2, "not decided"),
        (float("nan"), float("nan"), "not decided"),
    ],
)
def test_more_is_more_than_a_tie(low: float, high: float, wanted: str) -> None:
    assert above(low, high, 0.0) == wanted
    assert below(-high, -low, 0.0) == wanted


@pytest.mark.parametrize(
    ("bounds", "ends", "wanted"),
    [
        ((1.2, 0.8, 1.6), (1.0,), "; about 4 times as many seeds would decide it"),
        ((0.9, 0.6, 1.2), (1.0,), "; about 9 times as many seeds would decide it"),
        ((1.2, 1.1, 1.3), (1.0,), "; about 2 times as many seeds would decide it"),
        ((1.0, 0.7, 1.16), (0.9, 1.1), "; about 9 times as many seeds would decide it"),
        ((1.0, 0.5, 2.0), (1.0,), "; more than 50 times as many seeds would be needed"),
        ((1.2, float("nan"), 1.6), (1.0,), ""),
    ],
)
def test_an_interval_shrinks_with_the_root_of_the_number(
    bounds: tuple[float, float, float], ends: tuple[float, ...], wanted: str
) -> None:
    found = needed("not decided", bounds, ends, what="seeds")
    assert found.startswith(wanted)
    assert bool(found) == bool(wanted)
    assert needed("supported", bounds, ends) == ""


def test_equal_times_are_decided_by_what_counts_as_equal() -> None:
    """1 stays within their interval for ever; 1.05 does not."""
    assert longer_text("not decided", 1.0, 0.9, 1.1).startswith("; about 5 times")
    assert longer_text("not decided", 1.2, 0.9, 1.5).startswith("; about 3 times")
