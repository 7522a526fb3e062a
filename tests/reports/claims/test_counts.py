"""reports/claims/counts.py: verdicts from exact bytes and FLOPs."""

from pathlib import Path

from tests.made_runs import problem
from tests.reports.fake_claims import LENGTHS, Made, ledger_of, timed


def test_the_score_matrix_is_2_b_h_n2_e_to_the_byte(tmp_path: Path) -> None:
    claim = ledger_of(
        tmp_path, *(timed("fused", 1.0, problem(n, 8, batch=2, dtype="bf16")) for n in LENGTHS)
    )["C1"]
    assert claim.verdict == "supported"
    assert claim.parts[0].numbers.startswith("64 bytes per N², where 2 B h e is 64")
    assert "100\u00a0000\u00a0000 elements, 190.7 MiB" in claim.parts[0].numbers


def test_one_byte_more_per_pair_refutes_it_and_three_lengths_decide_nothing(tmp_path: Path) -> None:
    def made(lengths: tuple[int, ...], more: int) -> list[Made]:
        cases = [problem(n, 8) for n in lengths]
        return [
            timed("fused", 1.0, of, peak_bytes=(64 + more) * of["seq_len"] ** 2) for of in cases
        ]

    assert ledger_of(tmp_path / "a", *made(LENGTHS, 1))["C1"].verdict == "refuted"
    assert ledger_of(tmp_path / "b", *made(LENGTHS[:3], 0))["C1"].verdict == "inconclusive"


def test_masked_rows_are_no_evidence_on_the_score_matrix(tmp_path: Path) -> None:
    shape = {"batch": 2, "mask": "local", "window": 64}
    masked = [timed("fused", 1.0, problem(n, 8, **shape), peak_bytes=65 * n * n) for n in LENGTHS]
    assert ledger_of(tmp_path / "a", *masked)["C1"].verdict == "not run"
    plain = [timed("fused", 1.0, problem(n, 8)) for n in LENGTHS]
    assert ledger_of(tmp_path / "b", *plain, *masked)["C1"].verdict == "supported"


def test_memory_of_heads_depends_on_the_backend(tmp_path: Path) -> None:
    found = ledger_of(
        tmp_path,
        *(
            timed(b, 1.0, problem(n, h))
            for n in LENGTHS
            for h in (1, 8)
            for b in ("naive", "fused", "sdpa")
        ),
    )
    assert found["C3a"].verdict == "supported"
    assert found["C3b"].verdict == "depends"
    assert {part.of: part.verdict for part in found["C3b"].parts} == {
        "naive": "supported",
        "fused": "refuted",
        "sdpa": "supported",
    }


def test_memory_of_heads_at_too_few_lengths_is_decided_by_the_peaks(tmp_path: Path) -> None:
    claim = ledger_of(
        tmp_path, *(timed(b, 1.0, problem(4096, h)) for h in (1, 8) for b in ("fused", "sdpa"))
    )["C3b"]
    assert {part.of: part.verdict for part in claim.parts} == {
        "fused": "refuted",
        "sdpa": "supported",
    }


def test_heads_of_a_fixed_width_are_another_matter(tmp_path: Path) -> None:
    made = [timed("fused", 1.0, problem(n, h, d_k=64, d_v=64)) for n in LENGTHS for h in (1, 4)]
    found = ledger_of(tmp_path, *made)
    assert {found[name].verdict for name in ("C3a", "C3b", "C3c")} == {"not run"}
