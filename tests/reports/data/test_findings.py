"""reports/data/findings.py: several processes of a study become one finding."""

from typing import Any

import pytest

from attnbench.reports.data.findings import joined


def alone(process: int | None, ratio: float, batch: int = 1) -> dict[str, Any]:
    ends = {"alone_low_ratio": 0.1, "alone_high_ratio": 9.0, "alone_ratio": ratio}
    of = {"study": "batch_invariance", "backend": "sdpa", "kv_seq_len": 64, "batch": batch}
    return {**of, **ends, "process": process, "contended_blocks": 1, "blocks": 4}


def test_the_interval_is_over_processes_and_spans_them() -> None:
    """What a process says of itself does not count."""
    ratios = (1.1, 1.3, 1.2, 1.25, 1.15)
    (one,) = joined([alone(i, of) for i, of in enumerate(ratios)])
    assert one["alone_ratio"] == pytest.approx(1.2)
    assert 1.0 < one["alone_low_ratio"] <= 1.1 < 1.3 <= one["alone_high_ratio"] < 1.45
    assert (one["processes"], one["contended_blocks"], one["blocks"]) == (5, 5, 20)


def test_a_single_process_and_other_shapes_stay_as_they_are() -> None:
    found = [alone(None, 1.1), alone(None, 1.1, batch=2), alone(3, 1.2)]
    scales = [{"study": "score_scale", "d_k": 8, "scaled": True}] * 2
    assert joined([*found, *scales]) == [*found, *scales]


def generated(process: int, **changes: Any) -> dict[str, Any]:
    found = {"study": "generation", "backend": "sdpa", "tokens": 64, "complaint": ""}
    times = {"full_step_ms": 8.0 + process, "cached_step_ms": 2.0, "full_total_exponent": 2.0}
    return {**found, **times, "blocks": 4, "contended_blocks": 0, "process": process} | changes


def test_what_one_process_lacks_is_not_known() -> None:
    (whole,) = joined([generated(one) for one in range(3)])
    assert whole["full_step_ms"] == pytest.approx(9)
    assert whole["full_step_low_ms"] < 9 < whole["full_step_high_ms"]
    assert (whole["cached_step_ms"], whole["cached_step_low_ms"]) == (2.0, None), "equal in all"
    differs = {"full_step_ms": None, "complaint": "cached steps differ", "contended_blocks": None}
    (one,) = joined([generated(0), generated(1, **differs), generated(2)])
    assert one["full_step_ms"] is one["full_step_low_ms"] is one["contended_blocks"] is None
    assert one["complaint"] == "cached steps differ"
    assert one["cached_step_ms"] is not None


@pytest.mark.parametrize("value", [None, "x", [], {}, True, float("inf")])
def test_times_that_are_no_numbers_are_unknown(value: Any) -> None:
    (one,) = joined([generated(0), generated(1, full_step_ms=value, blocks=value)])
    assert one["full_step_ms"] is None
    assert one["blocks"] == 4
