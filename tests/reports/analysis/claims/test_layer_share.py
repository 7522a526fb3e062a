"""reports/analysis/claims/layer_share.py: what the core's share of a layer's time decides."""

from pathlib import Path

from tests.reports.fake_claims import (
    Made,
    layer,
    ledger_of,
    timed,
    work,
)
from tests.reports.fake_runs import problem


def test_core_and_layer_split_the_time(tmp_path: Path) -> None:
    def made(lengths: tuple[int, ...], projections: float) -> list[Made]:
        cores = [
            timed("fused", 2e-6 * n * n, problem(n), work_flops=work(problem(n))) for n in lengths
        ]
        return cores + [
            timed("fused", 2e-6 * n * n + projections * n, layer(n), work_flops=work(layer(n)))
            for n in lengths
        ]

    long = ledger_of(tmp_path / "a", *made((4096, 8192), 2e-3))
    assert (long["C10"].verdict, long["C16"].verdict) == ("supported", "refuted")
    assert "10 % of the layer is outside its core at N = 8k" in long["C10"].parts[0].numbers
    short = ledger_of(tmp_path / "b", *made((128, 512), 2e-3))
    assert (short["C10"].verdict, short["C16"].verdict) == ("inconclusive", "inconclusive")
    slow = ledger_of(tmp_path / "c", *made((4096, 8192), 8e-2))
    assert (slow["C10"].verdict, slow["C16"].verdict) == ("refuted", "inconclusive")
