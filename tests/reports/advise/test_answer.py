"""The whole answer: what is advised, traps, and what a longer run may decide."""

from pathlib import Path

from attnbench.reports.advise.answer import Advice, advise
from attnbench.reports.advise.words import use
from tests.reports.fake_advice import EAGER, SDPA, inquiry, measured, rows_of

SLOW = {"hf:eager": {"speed": 8.0}}
ASKED = inquiry(implementations=(EAGER, SDPA))


def answered(folder: Path, changes=SLOW) -> Advice:
    return advise(ASKED, rows_of(ASKED, measured(folder, ASKED, changes=changes)))


def test_sdpa_on_the_kernel_math_is_a_trap_in_each_kind_of_layer(tmp_path: Path):
    assert len(answered(tmp_path, SLOW | {"hf:sdpa": {"kernel": "math"}}).traps) == 2
    assert answered(tmp_path / "fine").traps == []


def test_a_tie_and_disturbed_times_are_worth_a_longer_run(tmp_path: Path):
    tie = answered(tmp_path / "tie", {})
    assert len(tie.decisions[0].close) == 2
    assert tie.is_doubtful
    assert answered(tmp_path / "busy", SLOW | {"hf:sdpa": {"contended_blocks": 8}}).is_doubtful
    assert not answered(tmp_path / "calm").is_doubtful


def test_each_phase_has_its_own_choice(tmp_path: Path):
    prefill, decode, both = (
        inquiry(implementations=(EAGER, SDPA), phases=phases)
        for phases in (("prefill",), ("decode",), ("prefill", "decode"))
    )
    folders = (
        measured(tmp_path / "a", prefill, changes=SLOW),
        measured(tmp_path / "b", decode, changes={"hf:sdpa": {"speed": 8.0}}),
    )
    found = advise(both, rows_of(both, *folders))
    assert [one.name_of_best for one in found.decisions] == ["sdpa", "eager"]


def test_one_name_for_all_phases_needs_no_more_memory_than_the_tie(tmp_path: Path):
    """It advised eager for prefill, a tie of 34 times the memory, as eager was first in decode."""
    both = inquiry(implementations=(EAGER, SDPA), phases=("prefill", "decode"))
    for heavy, uses in ((34, ['"sdpa" for prefill', '"eager" for decode']), (1, ['"eager" for'])):
        sizes = {"hf:eager": {"peak_bytes": heavy << 20}, "hf:sdpa": {"peak_bytes": 1 << 20}}
        slow = sizes | {"hf:sdpa": sizes["hf:sdpa"] | {"speed": 8.0}}
        prefill, decode = (
            inquiry(implementations=(EAGER, SDPA), phases=(one,)) for one in both.phases
        )
        folders = (
            measured(tmp_path / f"{heavy}a", prefill, changes=sizes),
            measured(tmp_path / f"{heavy}b", decode, changes=slow),
        )
        said = use(advise(both, rows_of(both, *folders)))
        assert all(one in said for one in uses), said
        assert said.count('" for ') == len(uses)
