"""reports/data/peaks.py: what run.json says about the device's measured rates."""

from typing import Any

import pytest

from attnbench.reports.data.peaks import memory_bytes_per_s, memory_doubt, peaks


def run(**calibration: Any) -> dict[str, Any]:
    return {"calibration": calibration}


def test_bandwidth_needs_no_peak_of_the_dtype_and_a_ridge_needs_both() -> None:
    known = run(peaks={"gemm_fp32_flops_per_s": 4e12, "copy_bytes_per_s": 4e10})
    assert memory_bytes_per_s(known) == 4e10
    assert peaks(known, "fp16") is None
    found = peaks(known, "fp32")
    assert found.ridge == 100
    assert (found.attainable(10), found.attainable(1000)) == (4e11, 4e12)


@pytest.mark.parametrize(
    "calibration",
    [
        None,
        [],
        {},
        {"peaks": []},
        *({"peaks": {"copy_bytes_per_s": x}} for x in ("1", None, 0, -1)),
    ],
)
def test_what_is_no_rate_is_no_bandwidth(calibration: Any) -> None:
    assert memory_bytes_per_s({"calibration": calibration}) is None
    assert memory_bytes_per_s({}) is None


GEMM = {"name": "gemm_fp32_flops_per_s: repeats", "verdict": "off", "reason": "busy"}
COPY = {"name": "copy_bytes_per_s: half-width of repeats", "verdict": "ok", "reason": ""}


@pytest.mark.parametrize(
    "checks", [None, 3, [], [None], [{"name": 1}], [{"verdict": "off"}], [GEMM, COPY]]
)
def test_checks_that_say_nothing_about_the_copy_are_no_doubt(checks: Any) -> None:
    assert memory_doubt(run(peaks={}, checks=checks)) == ""


def test_the_reason_of_a_doubt_is_short_and_harmless() -> None:
    off = COPY | {"verdict": "off", "reason": "\x1b[31m" + 1000 * "x"}
    found = memory_doubt(run(peaks={}, checks=[GEMM, off]))
    assert found.startswith("calibration doubts the copy that it timed (")
    assert "\x1b" not in found
    assert len(found) < 300
