"""reports/claims/ledger.py: every claim once in every ledger."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.claims.ledger import STATEMENTS, ledger, ledgers, merged
from attnbench.reports.claims.statement import Measured, claim
from attnbench.reports.claims.subjects import claims as page
from attnbench.reports.claims.verdict import Evidence
from attnbench.reports.data import load
from attnbench.reports.data.read import Run, read_run
from attnbench.reports.data.run_meta import Meta, run_meta, unanswered_texts
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
from tests.reports.fake_claims import COPIES, LENGTHS, MERGED, ledger_of, pruned
from tests.reports.rendering import rows_of, subject_of

IDS = list(STATEMENTS)


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
    run = inexact(tmp_path)
    claims = {claim.of.name: claim for claim in ledger(rows_of(run), {})}
    assert {part.of for part in claims["C2"].parts} == {"fused", "sdpa"}
    assert {part.of for part in claims["C11"].parts} == {"linformer", "linformer:64", "performer"}
    assert {part.of for part in claims["C12"].parts} == {"rnn"}


def test_the_ledger_has_the_claims_of_the_theory() -> None:
    """The other direction is left to the author: one new file is enough for a claim."""
    theory = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| (C\d+[a-z]?) \|", theory, re.MULTILINE)
    assert len(described) >= 19
    assert [name for name in IDS if name in described] == described


@pytest.mark.parametrize("made", [odd, quickstart, head_sweep, many_problems])
def test_every_claim_is_once_in_every_ledger_and_no_number_is_nan(
    tmp_path: Path, made: Any
) -> None:
    read = read_run(made(tmp_path))
    lines = lines_of([read], run_meta([read]))
    assert sorted(line[0] for line in lines) == sorted(IDS)
    text = " ".join(cell for line in lines for cell in line)
    assert not re.search(r"\b(nan|None|inf|NaN|<NA>)\b", text)


def test_runs_of_one_device_share_a_ledger_and_another_device_has_its_own(tmp_path: Path) -> None:
    runs = [read_run(quickstart(tmp_path / name, lengths=(128, 256, 512, 1024))) for name in "ab"]
    meta = run_meta(runs)
    assert sorted(line[0] for line in lines_of(runs, meta)) == sorted(IDS)
    for number, of in enumerate(meta.values()):
        of["environment"] |= {"cpu": f"CPU {number}"}
    assert sorted(line[0] for line in lines_of(runs, meta)) == sorted(2 * IDS)
    assert " on CPU 1 (cpu)" in ledgers(load.rows_of(runs), meta)
    for number, of in enumerate(meta.values()):
        of |= {"device": "cuda"}
        of["environment"] |= {"device_uuid": number}
    assert sorted(line[0] for line in lines_of(runs, meta)) == sorted(IDS)


def test_findings_count_where_no_case_has_a_row(tmp_path: Path) -> None:
    ((name, run),) = run_meta([read_run(quickstart(tmp_path, lengths=(128,)))]).items()
    (found,) = ledgers([], {name: {**run, "studies": COPIES}}).values()
    assert {claim.of.name: claim.verdict for claim in found}["C6"] == "refuted"


def lines_of(runs: Sequence[Run], meta: Meta) -> list[tuple[str, ...]]:
    found = ledgers(load.rows_of(runs), meta)
    return [
        line for claims in found.values() for table in page.tables(claims) for line in table.texts
    ]


def test_ledgers_of_several_runs_become_one(tmp_path: Path) -> None:
    one = ledger_of(tmp_path / "one", pruned(8, 8.0, 800), pruned(4, 4.0, 400), studies=MERGED)
    other = ledger_of(tmp_path / "other", studies=COPIES)
    both = {claim.of.name: claim for claim in merged([list(one.values()), list(other.values())])}
    assert list(both) == IDS
    verdicts = [found["C6"].verdict for found in (one, other, both)]
    assert verdicts == ["supported", "refuted", "depends"]
    assert both["C14"] == one["C14"]
    others = {claim.verdict for name, claim in both.items() if name not in ("C6", "C14")}
    assert others == {"not run"}


def test_beside_other_runs_the_card_is_about_those_that_test_claims(tmp_path: Path) -> None:
    run = pruning(tmp_path / "a")
    alone, beside = (
        subject_of(page, *some).card for some in ([run], [run, training(tmp_path / "b")])
    )
    assert alone is not None
    assert alone == beside


# ---- halves --------------------------------------------------------------------------------------

GROWS = Evidence("gru", "supported", "falls", "recurrent")
STAYS = Evidence("attention", "supported", "stays", "attention")
FAILS = GROWS._replace(verdict="refuted")


@pytest.mark.parametrize(
    ("parts", "verdict", "missing"),
    [
        ([GROWS, STAYS], "supported", ()),
        ([STAYS], "not decided", ("recurrent",)),
        ([STAYS, GROWS._replace(verdict="not run")], "not decided", ("recurrent",)),
        ([FAILS, STAYS], "refuted", ()),
        ([FAILS], "refuted", ("attention",)),
        ([FAILS, GROWS, STAYS], "depends", ()),
        ([], "not run", ()),
    ],
)
def test_a_statement_of_two_halves_needs_both(
    parts: list[Evidence], verdict: str, missing: tuple[str, ...]
) -> None:
    of = claim("C99", "", tested="", halves=("attention", "recurrent"))(lambda run: parts)
    found = of.parts(Measured(every=(), studies=None))
    assert (of.verdict(found), of.missing(found)) == (verdict, missing)


def test_the_half_that_a_study_lacks_is_named_with_the_reason() -> None:
    """Attention alone supported it, while the recurrent layer's part had timed out."""
    case = "study-score_scale-gru"
    gone = {"study": "score_scale", "case": case, "status": "timeout", "reason": "300 s are over"}
    half = {"study": "score_scale", "d_k": 8, "scaled": True, "of": "sdpa"}
    half |= {"score_variance": 1.0, "score_variance_low": 0.99, "score_variance_high": 1.01}
    (found,) = (
        one for one in ledger([], {"studies": [half], "unanswered": [gone]}) if one.of.name == "C5"
    )
    assert found.verdict == "not decided"
    assert found.lacking == (
        "not tested: without 1/sqrt(d_k) (study-score_scale-gru found nothing: 300 s are over)"
    )
    assert unanswered_texts({"run": {"unanswered": [gone]}}) == [
        f"1 study found nothing: {case} (300 s are over)."
    ]


def test_many_parts_of_a_study_that_found_nothing_are_counted() -> None:
    gone = [
        {"study": "score_scale", "case": f"part{i}", "status": "timeout", "reason": ""}
        for i in range(9)
    ]
    claims = {one.of.name: one for one in ledger([], {"unanswered": gone})}
    assert claims["C5"].lacking == (
        "part0 found nothing: timeout; part1 found nothing: timeout; part2 found nothing: timeout;"
        " 6 more found nothing"
    )
    (text,) = unanswered_texts({"run": {"unanswered": gone}})
    assert text.endswith("part2 (timeout) and 6 more.")


def test_evidence_of_no_half_is_a_mistake() -> None:
    of = claim("C99", "", tested="", halves=("one", "other"))(
        lambda run: [Evidence("", "refuted", "")]
    )
    with pytest.raises(ValueError, match="C99"):
        of.parts(Measured(every=(), studies=None))


def test_what_supports_in_one_run_is_not_lost_beside_what_is_open() -> None:
    """A run with a problem that supports and an open one, and a run that refutes: it depends."""
    statement = STATEMENTS["C20"]
    found = (Evidence("fused", "supported", "a"), Evidence("fused", "not decided", "b"))
    first, second = (
        replace(statement, test=lambda run, some=some: some, halves=("",))
        for some in (found, (Evidence("fused", "refuted", "c"),))
    )
    empty = Measured(every=(), studies=None)
    parts = (*first.parts(empty), *second.parts(empty))
    assert [part.numbers for part in parts] == ["a", "b", "c"]
    assert first.verdict(parts) == "depends"
