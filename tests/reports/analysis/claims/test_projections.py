"""reports/analysis/claims/projections.py: several products as one must be as right, and faster."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.analysis.claims.projections import one_product
from tests.reports.fake_claims import (
    Made,
    layer,
    ledger_of,
    timed,
    verdict,
)


def test_one_projection_must_be_as_right_and_faster(tmp_path: Path) -> None:
    def made(loop: float, **changes: Any) -> list[Made]:
        return [timed("naive", loop, layer(256), **changes), timed("fused", 1.0, layer(256))]

    assert ledger_of(tmp_path / "a", *made(1.5))["C4"].verdict == "supported"
    assert ledger_of(tmp_path / "b", *made(0.8))["C4"].verdict == "refuted"
    assert ledger_of(tmp_path / "c", *made(1.5, error_ratio=None))["C4"].verdict == "inconclusive"
    study = [{"study": "projection_equality", "holds": False}]
    assert ledger_of(tmp_path / "d", *made(1.5), studies=study)["C4"].verdict == "refuted"


def product(ratio: float, reach: float = 0.02) -> dict[str, Any]:
    return {
        "study": "joined_projections",
        "batch": 1,
        "seq_len": 16,
        "d_model": 256,
        "time_ratio": ratio,
        "time_low_ratio": ratio * (1 - reach),
        "time_high_ratio": ratio * (1 + reach),
    }


@pytest.mark.parametrize(
    ("ratio", "wanted"), [(2.0, "supported"), (0.5, "refuted"), (1.1, "inconclusive")]
)
def test_one_process_decides_what_processes_cannot_explain(ratio: float, wanted: str) -> None:
    assert verdict("Q15", [product(ratio)]) == wanted


def test_the_interval_shown_is_the_one_that_decides() -> None:
    """1.10 times within 2 %, of one process: it looked decided beside `inconclusive`."""
    (part,) = one_product([product(1.1)])
    assert part.numbers == (
        "three take 1.10 times (0.83 to 1.46) the time of one, which allows for the 30 % that"
        " processes may differ"
    )
