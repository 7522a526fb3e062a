"""Which implementation is fastest over all layers, and what leaves that open."""

import json
import math
from pathlib import Path

import pytest

from attnbench.reports.advise.choices import Choice, decide
from tests.made_runs import starts
from tests.reports.fake_advice import EAGER, SDPA, FakeShapes, inquiry, measured, rows_of

LENGTHS = (128, 256, 512, 1024, 2048)
TWO = inquiry(implementations=(EAGER, SDPA))
ALONE = inquiry(implementations=(SDPA,))


def decision_of(asked, *folders: Path, context: int = 1024):
    return decide(asked, rows_of(asked, *folders), "prefill", context)


def against(*folders: Path, context: int = 1024):
    """Of eager, which is slower, against sdpa."""
    decision = decision_of(TWO, *folders, context=context)
    assert [one.implementation.name for one in decision.choices] == ["sdpa", "eager"]
    return decision.choices[1].against


def two_runs(parent: Path, speed: float, lengths=(1024,)) -> list[Path]:
    """sdpa in one and eager in another, which takes `speed` times as long."""
    other = {"hf:eager": {"speed": speed, "session": "another"}}
    return [
        measured(parent / "a", TWO, lengths, implementations=(SDPA,)),
        measured(parent / "b", TWO, lengths, other, implementations=(EAGER,)),
    ]


def test_times_of_all_layers_are_counted_times_their_calls(tmp_path: Path):
    best = decision_of(ALONE, measured(tmp_path, ALONE)).best
    full, other = best.cells
    assert best.total_ms.value == pytest.approx(3 * full.call_ms.value + 2 * other.call_ms.value)
    assert best.total_ms.low == pytest.approx(3 * full.call_ms.low + 2 * other.call_ms.low)
    assert full.kernel == "hf:sdpa kernel"
    assert best.peak_bytes == max(full.peak_bytes, other.peak_bytes)


def test_equal_times_are_not_told_apart(tmp_path: Path):
    (tie,) = decision_of(TWO, measured(tmp_path, TWO)).ties
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


@pytest.mark.parametrize("context", [1024, 1536])  # measured, and fitted
def test_times_of_two_runs_allow_for_30_percent_if_it_is_not_known_how_runs_differ(
    tmp_path: Path, context: int
):
    found = against(*two_runs(tmp_path, 1.2, LENGTHS), context=context)
    assert (found.word, found.paired) == ("not decided", False)
    assert "between_runs" in found.doubts
    assert found.high / found.value > 1.3


def test_fitted_times_are_told_apart_where_they_clearly_differ(tmp_path: Path):
    folder = measured(tmp_path, TWO, LENGTHS, {"hf:eager": {"speed": 6.0}})
    assert against(folder, context=1536).word == "more"
    loud = {"hf:eager": {"speed": 3.0, "contended_blocks": 8}}
    found = against(measured(tmp_path / "loud", TWO, LENGTHS, loud), context=1536)
    assert (found.word, found.doubts) == ("not decided", ("contended",))


@pytest.mark.parametrize(("speed", "verdict"), [(60.0, "more"), (1.2, "not decided")])
def test_fitted_times_of_two_runs_allow_for_what_runs_differ_by(
    tmp_path: Path, speed: float, verdict: str
):
    folders = two_runs(tmp_path, speed, LENGTHS)
    starts(tmp_path / "a", 0.1, count=6)
    found = against(*folders, context=1536)
    assert found.word == verdict
    assert found.high / found.low > 1.44, "runs differ by 20 %, and only six checks say so"


def test_a_measured_time_beside_a_fitted_one_includes_what_processes_differ_by(tmp_path: Path):
    """A quick run of one process: its own interval is a few percent, processes differ by 30 %."""
    folder = measured(
        tmp_path, TWO, (*LENGTHS[:3], *LENGTHS[4:], 4096), {"hf:eager": {"speed": 1.25}}
    )
    beside = measured(tmp_path / "b", TWO, (1024,), implementations=(SDPA,))
    with (beside / "rows.jsonl").open("a") as rows:
        rows.write((folder / "rows.jsonl").read_text())
    meta = json.loads((beside / "run.json").read_text())
    meta["cases"] += json.loads((folder / "run.json").read_text())["cases"]
    (beside / "run.json").write_text(json.dumps(meta))
    found = against(beside)
    assert found.word == "not decided"
    assert math.log(found.high / found.low) > 2 * math.log(1.2)


def test_a_layer_that_cannot_be_measured_is_named_and_in_no_total(tmp_path: Path):
    asked = inquiry(shapes=FakeShapes(strange=True), implementations=(SDPA,))
    decision = decision_of(asked, measured(tmp_path, asked))
    assert [one.why for one in decision.not_measured] == ["has latent heads"]
    assert [cell.asked.layer for cell in decision.best.cells] == ["full", "other"]
