"""reports/claims/times.py: what the core's share of a layer's time decides."""

from pathlib import Path

from tests.made_runs import problem
from tests.reports.fake_claims import (
    Made,
    layer,
    ledger_of,
    timed,
    work,
)


def both(n: int, heads: int, core_ms: float, layer_ms: float) -> list[Made]:
    """A problem in both scopes."""
    shapes = [problem(n, heads), layer(n, heads)]
    return [
        timed("fused", ms, of, work_flops=work(of))
        for ms, of in zip((core_ms, layer_ms), shapes, strict=True)
    ]


def test_every_problem_counts_at_its_longest_length(tmp_path: Path) -> None:
    """With one head the core is less than half of the layer; it was the first one alone."""
    made = both(8192, 8, 9.0, 10.0) + both(8192, 1, 3.0, 10.0)
    claim = ledger_of(tmp_path / "a", *made)["C10"]
    assert claim.verdict == "depends"
    text = claim.parts[0].numbers.replace("\u00a0", " ")
    assert "N = 8k, h = 8" in text
    assert "N = 8k, h = 1" in text
    shorter = both(8192, 8, 9.0, 10.0) + both(4096, 8, 3.0, 10.0)
    assert ledger_of(tmp_path / "b", *shorter)["C10"].verdict == "supported"


def test_half_of_the_time_is_not_more_than_half(tmp_path: Path) -> None:
    exact = {"block_ms": [[[5.0]], [[5.0]], [[5.0]]]}
    whole = {"block_ms": [[[10.0]], [[10.0]], [[10.0]]]}
    shapes = (problem(8192, 8), exact), (layer(8192), whole)
    made = [timed("fused", 1.0, of, work_flops=work(of), **ms) for of, ms in shapes]
    assert ledger_of(tmp_path, *made)["C10"].verdict == "refuted"


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
    text = long["C10"].parts[0].numbers.replace("\u00a0", " ")
    assert "10 % of the layer is outside its core at N = 8k" in text
    short = ledger_of(tmp_path / "b", *made((128, 512), 2e-3))
    assert (short["C10"].verdict, short["C16"].verdict) == ("inconclusive", "inconclusive")
    slow = ledger_of(tmp_path / "c", *made((4096, 8192), 8e-2))
    assert (slow["C10"].verdict, slow["C16"].verdict) == ("refuted", "inconclusive")
