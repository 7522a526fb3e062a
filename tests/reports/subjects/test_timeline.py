"""reports/subjects/_timeline.py: lines break at missing samples, keep extremes, have few points."""

from typing import Any

import pytest

from attnbench.reports.subjects._timeline import MOST_POINTS, QUANTITIES, traces

CLOCK = QUANTITIES["gpu"][0]
PERIOD_S = 0.2


def ticks(values: list[float | None], what: str = "a", start: int = 0) -> list[dict[str, Any]]:
    return [
        {"kind": "gpu", "t_ns": (start + place) * 200_000_000, "what": what, "sm_clock_mhz": y}
        | {"clock_event_mask": None}
        for place, y in enumerate(values)
    ]


def test_a_line_belongs_to_the_backend_that_ran_and_breaks_between() -> None:
    rows = [
        *ticks([1.0, 2.0], "case a"),
        *ticks([3.0], "case b", 2),
        *ticks([4.0], "case a", 3),
        *ticks([5.0], "warm-up", 4),
    ]
    found = {
        trace.backend: trace
        for trace in traces(rows, CLOCK, {"case a": "fused", "case b": "sdpa"}, PERIOD_S)
    }
    assert found["fused"].y == (1.0, 2.0, None, 4.0, None)
    assert found["fused"].x == pytest.approx((0, 0.2, 0.2, 0.6, 0.6))
    assert found["sdpa"].y == (3.0, None)
    assert found["other"].y == (5.0, None)


def test_a_silence_breaks_the_line_and_a_missing_value_is_no_point() -> None:
    rows = [*ticks([1.0, None, 2.0]), *ticks([3.0], start=20)]
    (trace,) = traces(rows, CLOCK, {"a": "fused"}, PERIOD_S)
    assert trace.y == (1.0, 2.0, None, 3.0, None)


@pytest.mark.parametrize("gap", [1, 50])
def test_ten_thousand_samples_are_few_points_with_the_same_extremes(gap: int) -> None:
    values = [1000.0 + (place * 7919) % 500 for place in range(10_000)]
    rows = [
        row | {"t_ns": row["t_ns"] * (gap if place % 3 else 1)}
        for place, row in enumerate(ticks(values))
    ]
    (trace,) = traces(rows, CLOCK, {"a": "fused"}, PERIOD_S)
    known = [y for y in trace.y if y is not None]
    assert len(trace.x) <= MOST_POINTS
    assert len(known) > 100
    assert (min(known), max(known)) == (min(values), max(values))
