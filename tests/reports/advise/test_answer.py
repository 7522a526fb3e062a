"""The whole answer: what is advised, traps, what is missing, and what a longer run may decide."""

from pathlib import Path

from attnbench.reports.advise.answer import advise, close_choices
from attnbench.reports.advise.stored import StoredRows
from tests.reports.fake_advice import EAGER, SDPA, FakeShapes, inquiry, measured, rows_of


def test_the_fastest_is_advised_and_its_bytes_are_shown(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA))
    folder = measured(tmp_path, asked, changes={"hf:eager": {"speed": 8.0}})
    advice = advise(asked, rows_of(asked, folder))
    ((name, decisions),) = advice.recommended
    assert (name, [one.context for one in decisions]) == ("sdpa", [1024])
    assert [(phase, one.name) for phase, one, _ in advice.needs] == [("prefill", "sdpa")]
    assert [run.path for run in advice.runs] == [folder]
    assert advice.missing == []


def test_without_times_the_one_that_needs_least_is_shown():
    shapes = FakeShapes(formulas={"hf:eager": 9, "hf:sdpa": 7})
    advice = advise(inquiry(shapes=shapes), StoredRows())
    assert [one.name for _, one, _ in advice.needs] == ["sdpa"]
    assert advice.recommended == []
    assert len(advice.missing) == 1


def test_sdpa_on_the_kernel_math_is_a_trap_with_its_likely_reasons(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    advice = advise(
        asked, rows_of(asked, measured(tmp_path, asked, changes={"hf:sdpa": {"kernel": "math"}}))
    )
    assert len(advice.traps) == 2
    assert "writes all scores; it is fp32" in advice.traps[0]
    fine = advise(asked, rows_of(asked, measured(tmp_path / "fine", asked)))
    assert fine.traps == []


def test_only_what_is_undecided_is_worth_a_longer_run(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA))
    clear = advise(
        asked,
        rows_of(asked, measured(tmp_path / "a", asked, changes={"hf:eager": {"speed": 9.0}})),
    )
    assert close_choices(clear.decisions[0]) == []
    even = advise(asked, rows_of(asked, measured(tmp_path / "b", asked)))
    (decision,) = even.decisions
    undecided = [one for one in decision.ties if one.against and one.against.verdict == "undecided"]
    assert len(close_choices(decision)) == (1 + len(undecided) if undecided else 0)
