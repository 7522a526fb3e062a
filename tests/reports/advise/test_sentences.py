"""Advice in words: nothing is claimed that is not decided, and what is not known is said."""

from dataclasses import replace
from pathlib import Path

from attnbench.reports.advise.answer import advise
from attnbench.reports.advise.sentences import (
    beside_tables,
    headline,
    longest_sentence,
)
from attnbench.reports.advise.stored import StoredRows
from attnbench.reports.advise.tables import choice_tables
from tests.reports.fake_advice import (
    EAGER,
    SDPA,
    FakeShapes,
    inquiry,
    measured,
    rows_of,
)

SLOW = {"hf:eager": {"speed": 8.0}}


def advice_of(folder: Path, **changes):
    asked = inquiry(**{"implementations": (EAGER, SDPA), **changes})
    return advise(asked, rows_of(asked, measured(folder, asked, changes=SLOW)))


def test_a_tie_is_no_victory(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA))
    advice = advise(asked, rows_of(asked, measured(tmp_path, asked)))
    end = "for prefill of 1,024 tokens (undecided: sdpa may be as fast or faster)."
    assert headline(advice).endswith(end)
    (table,) = choice_tables(advice)
    assert [row[3] for row in table.rows] == ["fastest seen", "undecided"]
    assert advice.is_doubtful


def test_times_that_other_work_disturbed_come_with_a_caution(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA))
    calm = advice_of(tmp_path / "calm")
    assert not any("competed" in one for one in beside_tables(calm))
    assert not calm.is_doubtful
    disturbed = {"hf:eager": {"speed": 8.0}, "hf:sdpa": {"contended_blocks": 8}}
    folder = measured(tmp_path / "busy", asked, changes=disturbed)
    busy = advise(asked, rows_of(asked, folder))
    (caution,) = [one for one in beside_tables(busy) if "competed" in one]
    kinds = len(asked.shapes.asked("prefill", 1024))
    assert f"in most blocks of {kinds} of these {2 * kinds} times: measure again" in caution
    assert busy.is_doubtful


def test_one_that_was_seen_to_take_longer_is_not_advised_for_both_phases(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA), phases=("prefill", "decode"))
    prefill = inquiry(implementations=(EAGER, SDPA))
    decode = inquiry(implementations=(EAGER, SDPA), phases=("decode",))
    folders = (
        measured(tmp_path / "a", prefill, changes=SLOW),
        measured(tmp_path / "b", decode, changes={"hf:sdpa": {"speed": 8.0}}),
    )
    said = headline(advise(asked, rows_of(asked, *folders)))
    assert said == (
        'Use attn_implementation="sdpa" for prefill of 1,024 tokens (faster than eager);'
        ' "eager" for decode after 1,024 tokens (faster than sdpa).'
    )


def test_a_context_that_follows_from_a_bound_is_at_least_that_long():
    class Bounded(FakeShapes):
        def predicted_peak(self, implementation, problem):
            return replace(super().predicted_peak(implementation, problem), at_most=True)

    advice = advise(inquiry(shapes=Bounded(formulas={"hf:sdpa": 7})), StoredRows())
    assert longest_sentence(advice.longest).startswith("At least 3,604 tokens with sdpa (memory")
