"""reports/claims: several products as one must be as right, and faster."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.claims.verdict import Evidence
from tests.reports.fake_claims import (
    Made,
    layer,
    ledger_of,
    parts,
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


def test_disturbed_products_decide_only_what_disturbed_processes_cannot_explain() -> None:
    def part(ratio: float, contended: int) -> Evidence:
        found = [{**product(ratio), "contended_blocks": contended, "blocks": 8}]
        return next(iter(parts("Q15", found).values()))

    assert (part(2.0, 4).verdict, part(2.0, 5).verdict) == ("supported", "inconclusive")
    assert part(5.0, 5).verdict == "supported"
    assert part(2.0, 5).numbers.endswith(
        "which allows for the 300 % that processes may differ while other work disturbs them"
    )
    assert part(2.0, 4).numbers.endswith("the 30 % that processes may differ")


def test_a_disturbed_ratio_of_the_loop_decides_nothing(tmp_path: Path) -> None:
    made = [
        timed(b, ms, layer(256), contended_blocks=8) for b, ms in (("naive", 1.5), ("fused", 1.0))
    ]
    claim = ledger_of(tmp_path, *made)["C4"]
    assert claim.verdict == "inconclusive"
    assert "while other work disturbed most blocks" in claim.parts[0].numbers
