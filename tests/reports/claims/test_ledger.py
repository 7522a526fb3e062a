"""reports/claims/ledger.py and its page: every claim once, however the runs look."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from attnbench.reports.claims.claim import Claim, Found, Measured, Quantity
from attnbench.reports.claims.ledger import QUANTITIES, STATEMENTS, claims_on, measured
from attnbench.reports.claims.subjects import claims as page
from attnbench.reports.data import load
from attnbench.reports.data.read import Run, read_run
from attnbench.reports.data.run_meta import Meta, run_meta
from tests.conftest import ROOT
from tests.made_runs import (
    case,
    head_sweep,
    inexact,
    many_problems,
    problem,
    pruning,
    quickstart,
    row,
    training,
    write_run,
)
from tests.reports.fake_claims import COPIES, LENGTHS, MERGED, judged
from tests.reports.rendering import rows_of, subject_of


def odd(parent: Path) -> Path:
    """Layers without a number, and windows without a counter."""
    cases = [
        case(backend, problem(n, h, scope="layer"))
        for n in LENGTHS
        for h in (1, 8)
        for backend in ("naive", "fused", "rnn")
    ]
    nothing = {"peak_bytes": None, "error_ratio": None, "session": None, "work_flops": 0}
    return write_run(parent, cases, [row(one, block_ms=[[[1.0]]], **nothing) for one in cases])


def test_claims_on_attention_take_no_evidence_from_other_computations(tmp_path: Path) -> None:
    claims = judged(Measured(every=rows_of(inexact(tmp_path)), run={}))
    of = {name: {found.of for _, found in one.found} for name, one in claims.items()}
    assert of["C2"] == {"fused", "sdpa"}
    assert of["C11"] == {"linformer", "linformer:64", "performer"}
    assert of["C12"] == {"rnn"}


def test_the_ledger_has_the_claims_of_the_theory() -> None:
    theory = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| (C\d+[a-z]?) \|", theory, re.MULTILINE)
    assert len(described) >= 18
    assert list(STATEMENTS) == described


@pytest.mark.parametrize("made", [odd, quickstart, head_sweep, many_problems])
def test_every_claim_is_once_in_every_ledger_and_no_number_is_nan(
    tmp_path: Path, made: Callable[[Path], Path]
) -> None:
    read = read_run(made(tmp_path))
    lines = lines_of([read], run_meta([read]))
    assert sorted(line[0] for line in lines) == sorted(STATEMENTS)
    text = " ".join(cell for line in lines for cell in line)
    assert not re.search(r"\b(nan|None|inf|NaN|<NA>)\b", text)


def test_runs_of_one_device_share_a_ledger_and_another_device_has_its_own(tmp_path: Path) -> None:
    runs = [read_run(quickstart(tmp_path / name, lengths=(128, 256, 512, 1024))) for name in "ab"]
    meta = run_meta(runs)
    assert len(lines_of(runs, meta)) == len(STATEMENTS)
    for number, of in enumerate(meta.values()):
        of["environment"] |= {"cpu": f"CPU {number}"}
    assert len(lines_of(runs, meta)) == 2 * len(STATEMENTS)
    assert " on CPU 1 (cpu)" in measured(load.rows_of(runs), meta)
    for number, of in enumerate(meta.values()):
        of |= {"device": "cuda"}
        of["environment"] |= {"device_uuid": number}
    assert len(lines_of(runs, meta)) == len(STATEMENTS)


def lines_of(runs: Sequence[Run], meta: Meta) -> list[tuple[str, ...]]:
    found = measured(load.rows_of(runs), meta).values()
    return [line for some in found for line in page.table(claims_on(some)).texts]


def test_findings_count_where_no_case_has_a_row(tmp_path: Path) -> None:
    ((name, run),) = run_meta([read_run(quickstart(tmp_path, lengths=(128,)))]).items()
    (found,) = measured([], {name: {**run, "studies": COPIES}}).values()
    assert judged(*found)["C6"].verdict == "refuted"


def test_runs_that_contradict_each_other_leave_it_open() -> None:
    runs = [Measured(every=(), run={"studies": some}) for some in (MERGED, COPIES)]
    verdicts = [judged(*some)["C6"].verdict for some in ([runs[0]], [runs[1]], runs)]
    assert verdicts == ["supported", "refuted", "depends"]


def test_beside_other_runs_the_card_is_about_those_that_test_claims(tmp_path: Path) -> None:
    run = pruning(tmp_path / "a")
    alone, beside = (
        subject_of(page, *some).card for some in ([run], [run, training(tmp_path / "b")])
    )
    assert alone is not None
    assert alone == beside


def test_what_a_study_lacks_is_named_with_the_reason() -> None:
    """Attention alone supported it, while the recurrent layer's part had timed out."""
    case_id = "study-score_scale-gru"
    gone = {
        "study": "score_scale",
        "case": case_id,
        "status": "timeout",
        "reason": "300 s are over",
    }
    half = {"study": "score_scale", "d_k": 8, "scaled": True, "of": "sdpa"}
    half |= {"score_variance": 1.0, "score_variance_low": 0.99, "score_variance_high": 1.01}
    found = judged(Measured(every=(), run={"studies": [half], "unanswered": [gone]}))["C5"]
    assert found.verdict == "not decided"
    assert found.lacking == (
        "not tested: without 1/sqrt(d_k), over d_k; attnbench run claims measures it"
        " (score_scale);"
        " study-score_scale-gru found nothing: 300 s are over"
    )


# ---- one claim -----------------------------------------------------------------------------------

RANGE = Quantity("C99", "of attention", (0.9, 1.1), lambda run: ())
INSIDE, OUTSIDE = Found("fused", 0.95, 1.05, "near"), Found("fused", 1.2, 1.3, "far")
ACROSS = Found("fused", 1.0, 1.2, "open")


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (INSIDE, "supported"),
        (OUTSIDE, "refuted"),
        (ACROSS, "not decided"),
        (Found("", 0.5, 0.6, ""), "refuted"),
        (Found("", float("nan"), float("nan"), ""), "not decided"),
        (INSIDE._replace(doubt="busy"), "not decided"),
        (OUTSIDE._replace(doubt="busy"), "not decided"),
    ],
)
def test_the_verdict_comes_from_the_interval(found: Found, verdict: str) -> None:
    assert RANGE.verdict(found) == verdict


def test_less_than_the_range_decides_nothing_where_it_may_be_hidden() -> None:
    found = Found("rnn", 0.5, 0.6, "N^0.55", most=1.0)
    assert RANGE.verdict(found) == "not decided"
    assert RANGE.text(found).startswith("N^0.55: other costs may hide more")
    assert RANGE.verdict(found._replace(most=0.8)) == "refuted"
    assert RANGE.verdict(found._replace(low=3.0, high=3.1)) == "refuted"


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ([INSIDE], [INSIDE], "supported"),
        ([INSIDE], [], "not decided"),
        ([INSIDE], [ACROSS], "not decided"),
        ([INSIDE, ACROSS], [INSIDE], "not decided"),
        ([OUTSIDE], [INSIDE], "refuted"),
        ([OUTSIDE, ACROSS], [], "refuted"),
        ([OUTSIDE, INSIDE], [INSIDE], "depends"),
        ([OUTSIDE, INSIDE, ACROSS], [ACROSS], "depends"),
        ([OUTSIDE, INSIDE], [OUTSIDE], "refuted"),
        ([], [], "not run"),
    ],
)
def test_a_claim_of_two_quantities_needs_both(
    one: list[Found], other: list[Found], verdict: str
) -> None:
    quantities = [
        Quantity("C99", name, (0.9, 1.1), lambda run, some=some: some)
        for name, some in (("one", one), ("other", other))
    ]
    claim = Claim("C99", "", "", quantities, [Measured(every=(), run={})])
    assert claim.verdict == verdict


def test_the_range_that_counts_as_holding_is_told() -> None:
    told = {one.claim: one.wanted for one in QUANTITIES}
    assert told["C3b"] == "bytes over those of one head: 0 to 1.05"
    assert told["C6"] == "copied bytes: 0"
    assert told["C15"].endswith(": above 1.00")
