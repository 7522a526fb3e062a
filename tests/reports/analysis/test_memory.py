"""reports/analysis/memory.py: which numbers a peak is compared with, and when they agree."""

from typing import Any

import pytest

from attnbench.reports.analysis.memory import disagreement, other_peaks

MIB = 1 << 20


def row_with_peaks(measured: int = 150 * MIB, **changes: Any) -> dict[str, Any]:
    usual = {
        "status": "ok",
        "device": "cpu",
        "heads": 8,
        "peak_bytes": measured,
        "predicted_peak_bytes": measured,
    }
    return (
        usual
        | {
            "predicted_source": "formula",
            "meta_peak_bytes": measured,
            "resident_peak_bytes": measured,
        }
        | changes
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, ""),
        ({"predicted_peak_bytes": 150 * MIB - 64, "meta_peak_bytes": 150 * MIB + 64 + 8 * 8}, ""),
        ({"predicted_peak_bytes": 134 * MIB}, "formula 16 MiB less"),
        ({"meta_peak_bytes": 150 * MIB + 200}, "meta 200 B more"),
        ({"device": "cuda", "meta_peak_bytes": 150 * MIB + 200}, ""),
        ({"predicted_peak_bytes": None, "meta_peak_bytes": None, "resident_peak_bytes": None}, ""),
        ({"resident_peak_bytes": 154 * MIB}, ""),
        ({"resident_peak_bytes": 200 * MIB}, "resident 50 MiB more"),
        ({"measured": MIB, "resident_peak_bytes": 9 * MIB}, ""),
        ({"status": "oom", "peak_bytes": None}, ""),
    ],
)
def test_what_differs_by_more_than_its_way_of_counting_allows_is_a_disagreement(
    changes: dict[str, Any], text: str
) -> None:
    assert disagreement(row_with_peaks(**changes)) == text


def test_a_prediction_that_came_from_the_meta_device_is_no_formula() -> None:
    row = row_with_peaks(
        predicted_source="meta",
        predicted_peak_bytes=140 * MIB,
        meta_peak_bytes=140 * MIB,
        resident_peak_bytes=None,
    )
    assert [other.name for other in other_peaks(row)] == ["meta"]
