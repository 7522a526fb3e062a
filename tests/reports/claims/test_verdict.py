"""reports/claims/verdict.py: how verdicts are combined."""

import pytest

from attnbench.reports.claims.verdict import (
    ClaimVerdict,
    above,
    agreed,
    by_interval,
    jointly,
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
