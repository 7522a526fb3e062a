"""Which implementation is fastest over all layers, and what leaves that open."""

from pathlib import Path

import pytest

from attnbench.reports.advise.choices import Choice, decide
from tests.reports.fake_advice import EAGER, SDPA, FakeShapes, inquiry, measured, rows_of

TWO = inquiry(implementations=(EAGER, SDPA))
ALONE = inquiry(implementations=(SDPA,))


def decision_of(asked, *folders: Path):
    return decide(asked, rows_of(asked, *folders), "prefill", 1024)


def against(*folders: Path):
    """Of eager, which is slower, against sdpa."""
    decision = decision_of(TWO, *folders)
    assert [one.implementation.name for one in decision.choices] == ["sdpa", "eager"]
    return decision.choices[1].against


def two_runs(parent: Path, speed: float) -> list[Path]:
    """sdpa in one and eager in another, which takes `speed` times as long."""
    other = {"hf:eager": {"speed": speed, "session": "another"}}
    return [
        measured(parent / "a", TWO, implementations=(SDPA,)),
        measured(parent / "b", TWO, changes=other, implementations=(EAGER,)),
    ]


def test_times_of_all_layers_are_counted_times_their_calls(tmp_path: Path):
    best = decision_of(ALONE, measured(tmp_path, ALONE)).best
    full, other = best.cells
    assert best.total_ms.value == pytest.approx(3 * full.call_ms.value + 2 * other.call_ms.value)
    assert best.total_ms.low == pytest.approx(3 * full.call_ms.low + 2 * other.call_ms.low)
    assert full.kernel == "hf:sdpa kernel"
    assert best.peak_bytes == max(full.peak_bytes, other.peak_bytes)


def test_equal_times_are_not_told_apart(tmp_path: Path):
    (_, tie) = decision_of(TWO, measured(tmp_path, TWO)).as_good
    assert tie.against.word in ("same", "not decided")
    assert tie.against.low < 1 < tie.against.high


def test_at_a_tie_the_one_of_less_memory_is_chosen(tmp_path: Path):
    less = {"hf:eager": {"peak_bytes": 2 << 20}, "hf:sdpa": {"peak_bytes": 1 << 20}}
    more = {"hf:eager": {"peak_bytes": 1 << 20}, "hf:sdpa": {"peak_bytes": 2 << 20}}
    for number, changes in enumerate((less, more)):
        folder = measured(tmp_path / str(number), TWO, changes=changes)
        assert decision_of(TWO, folder).name_of_best == ("sdpa", "eager")[number]
    clear = {**more, "hf:eager": {"peak_bytes": 1 << 20, "speed": 3.0}}
    assert decision_of(TWO, measured(tmp_path / "clear", TWO, changes=clear)).name_of_best == "sdpa"


def test_without_a_time_an_implementation_stands_last_with_the_reason(tmp_path: Path):
    def last(*folders: Path) -> Choice:
        found = decision_of(TWO, *folders).choices[-1]
        assert (found.implementation, found.total_ms) == (EAGER, None)
        return found

    failed = last(measured(tmp_path / "a", TWO, changes={"hf:eager": {"status": "oom"}}))
    assert failed.why_not.startswith("oom: DefaultCPUAllocator")
    assert not failed.missing
    absent = last(measured(tmp_path / "b", TWO, implementations=(SDPA,)))
    assert (absent.why_not, absent.missing) == ("not measured", True)
    assert decision_of(TWO).best is None


def test_times_of_two_runs_allow_for_30_percent_if_it_is_not_known_how_runs_differ(tmp_path: Path):
    found = against(*two_runs(tmp_path, 1.2))
    assert (found.word, found.paired) == ("not decided", False)
    assert "between_runs" in found.doubts
    assert found.high / found.value > 1.3


def test_a_length_that_was_not_measured_has_no_time(tmp_path: Path):
    """Whatever others say of it."""
    found = decision_of(TWO, measured(tmp_path, TWO, (256, 512, 2048, 4096)))
    assert found.best is None
    assert {one.why_not for one in found.choices} == {"not measured"}


def test_a_layer_that_cannot_be_measured_is_named_and_in_no_total(tmp_path: Path):
    asked = inquiry(shapes=FakeShapes(strange=True), implementations=(SDPA,))
    decision = decision_of(asked, measured(tmp_path, asked))
    assert [one.why for one in decision.not_measured] == ["has latent heads"]
    assert [cell.asked.layer for cell in decision.best.cells] == ["full", "other"]
