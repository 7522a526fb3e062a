"""reports/analysis/claims/counts.py: verdicts from exact bytes and FLOPs."""

from pathlib import Path

from attnbench.reports.analysis.claims.claim_verdict import Evidence, first_texts
from tests.reports.fake_claims import LENGTHS, Made, ledger_of, timed
from tests.reports.fake_runs import problem


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


def test_only_what_is_equal_says_how_many_elements_a_matrix_has(tmp_path: Path) -> None:
    cases = [problem(n, 8) for n in LENGTHS]
    made = [timed("fused", 1.0, of, peak_bytes=96 * of["seq_len"] ** 2) for of in cases]
    assert "elements" not in ledger_of(tmp_path, *made)["C1"].parts[0].numbers


def test_the_number_of_heads_that_takes_more_is_the_one_shown(tmp_path: Path) -> None:
    """Four heads take more, eight as much as one: the text said 8 and 8."""
    made = [
        timed("fused", 1.0, problem(n, h), peak_bytes=(16 if h == 4 else 8) * n * n)
        for n in LENGTHS
        for h in (1, 4, 8)
    ]
    (part,) = ledger_of(tmp_path, *made)["C3b"].parts
    assert part.verdict == "refuted"
    assert part.numbers.startswith("16 bytes per N² with 4 heads, 8 with one")


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


def test_the_texts_of_a_part_begin_with_what_decides_it() -> None:
    fine = [Evidence("", "supported", f"fine {number}") for number in range(4)]
    open_, bad = Evidence("", "inconclusive", "why"), Evidence("", "refuted", "bad")
    assert first_texts([*fine, open_]) == "why; fine 0; and 3 more"
    assert first_texts([*fine, bad]) == "fine 0; bad; and 3 more"
    assert first_texts(fine[:3]) == "fine 0; fine 1; fine 2"


def test_a_ratio_of_peaks_names_the_problem_that_it_is_of(tmp_path: Path) -> None:
    """In two scopes at one length: numbers that differ must not look like those of one problem."""
    made = [
        timed("fused", 1.0, problem(4096, h, scope=scope), peak_bytes=peak)
        for scope, more in (("core", 8000), ("layer", 6000))
        for h, peak in ((1, 1000), (8, more))
    ]
    (part,) = ledger_of(tmp_path, *made)["C3b"].parts
    text = part.numbers.replace("\u00a0", " ")
    assert "8.00 times the bytes of one head with 8 at N = 4k, core" in text
    assert "6.00 times the bytes of one head with 8 at N = 4k, layer" in text
