"""reports/claims/claim.py: the verdict comes from the interval, and what combines several."""

import pytest

from attnbench.reports.claims.claim import Claim, Found, Outcome
from attnbench.reports.claims.ledger import CLAIMS

ONE, OTHER = "latency_ms", "peak_bytes"
RANGE = Claim("C99", "", "of attention", (0.9, 1.1), "", lambda rows, column: (), (ONE, OTHER))
INSIDE = Found("fused", ONE, 0.95, 1.05, "near")
OUTSIDE = Found("fused", ONE, 1.2, 1.3, "far")
ACROSS = Found("fused", ONE, 1.0, 1.2, "open")


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (INSIDE, "supported"),
        (OUTSIDE, "refuted"),
        (ACROSS, "not decided"),
        (INSIDE._replace(low=0.5, high=0.6), "refuted"),
        (INSIDE._replace(low=float("nan"), high=float("nan")), "not decided"),
        (INSIDE._replace(doubt="busy"), "not decided"),
        (OUTSIDE._replace(doubt="busy"), "not decided"),
    ],
)
def test_the_verdict_comes_from_the_interval(found: Found, verdict: str) -> None:
    assert RANGE.verdict(found) == verdict


def test_less_than_the_range_decides_nothing_where_it_may_be_hidden() -> None:
    found = Found("rnn", ONE, 0.5, 0.6, "N^0.55", most=1.0)
    assert RANGE.verdict(found) == "not decided"
    assert RANGE.text(found).startswith("N^0.55: other costs may hide more")
    assert RANGE.verdict(found._replace(most=0.8)) == "refuted"
    assert RANGE.verdict(found._replace(low=3.0, high=3.1)) == "refuted"


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ([INSIDE], [INSIDE], "supported"),
        ([INSIDE], [], "not decided"),
        ([INSIDE], [ACROSS], "not decided"),
        ([INSIDE, ACROSS], [INSIDE], "not decided"),
        ([OUTSIDE], [INSIDE], "refuted"),
        ([OUTSIDE, ACROSS], [], "refuted"),
        ([OUTSIDE, INSIDE], [INSIDE], "depends"),
        ([OUTSIDE, INSIDE, ACROSS], [ACROSS], "depends"),
        ([OUTSIDE, INSIDE], [OUTSIDE], "refuted"),
    ],
)
def test_a_claim_on_two_columns_needs_both(
    one: list[Found], other: list[Found], verdict: str
) -> None:
    both = [*one, *(found._replace(column=OTHER) for found in other)]
    assert Outcome(RANGE, both).verdict == verdict


def test_the_range_that_counts_as_holding_is_told() -> None:
    told = {one.name: one.wanted for one in CLAIMS}
    assert told["C1"].endswith(": 1.00")
    assert told["C3b"] == "bytes over those of one head: 0 to 1.05"
    assert told["C4"].endswith(": above 1.05")
