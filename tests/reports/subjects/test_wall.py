"""reports/subjects/wall.py: the sentence on where memory ends, and the chart's points."""

import re
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.elements import WallChart
from attnbench.reports.subjects import memory, wall
from tests.made_runs import GIB, LENGTHS, grid, over_n, quickstart, row, write_run
from tests.reports.rendering import card_of, subject_of


def sentence(one: Any, run: Path) -> str:
    return re.sub("[\u00a0\u202f]", " ", card_of(one, run).sentence)


def chart(run: Path) -> WallChart:
    picture = card_of(wall, run).picture
    assert isinstance(picture, WallChart)
    return picture


def test_a_crossing_is_the_last_n_within_the_budget(tmp_path: Path) -> None:
    """64 N^2 + 4096 N and inputs of 6144 N bytes against 2 GiB."""

    def need(n: int) -> int:
        return 64 * n * n + 10240 * n

    (line,) = chart(over_n(tmp_path)).panels[0][1]
    assert line.stop_n is not None
    assert need(line.stop_n) <= 2 * GIB < need(line.stop_n + 1)


def test_no_crossing_is_computed_from_a_formula_that_a_measurement_contradicts(
    tmp_path: Path,
) -> None:
    cases = grid(("fused",), LENGTHS)
    rows = [row(one, "oom" if one["seq_len"] == 8192 else "ok") for one in cases]
    rows[1]["peak_bytes"] += 1 << 20
    run = write_run(tmp_path, cases, rows)
    assert "It stops between N = 4 096 and 8 192." in sentence(wall, run)
    (line,) = chart(run).panels[0][1]
    assert (line.stop_n, line.between) == (None, (4096, 8192))


def test_no_crossing_is_computed_outside_the_lengths_that_were_tried(tmp_path: Path) -> None:
    """The formula would end at 5713, but 4096 did not fit."""
    run = over_n(tmp_path, out_from=4096)
    assert "between N = 2 048 and 4 096" in sentence(wall, run)


def test_points_are_inputs_and_peak_and_say_how_the_case_ended(tmp_path: Path) -> None:
    (label, lines), (other, _) = chart(quickstart(tmp_path)).panels
    assert (label, other) == ("8 heads", "1 head")
    fused = next(line for line in lines if line.backend == "fused")
    ends = {point.seq_len: point.end for point in fused.points}
    assert (ends[4096], ends[8192], ends[16384]) == ("ok", "oom", "predicted_oom")
    first = fused.points[0]
    assert first.need_bytes == 64 * 128**2 + 10240 * 128 + 16  # 16 more than the formula


def test_a_case_that_crashed_is_drawn_by_formula(tmp_path: Path) -> None:
    _, lines = chart(quickstart(tmp_path)).panels[1]
    naive = next(line for line in lines if line.backend == "naive")
    assert {point.seq_len: point.end for point in naive.points}[2048] == "formula"


UNKNOWN = {"peak_bytes": None, "predicted_peak_bytes": None, "meta_peak_bytes": None}


@pytest.mark.parametrize(("lengths", "changes"), [(LENGTHS, UNKNOWN), ((512, 1024), {})])
def test_unknown_bytes_and_two_lengths_show_no_growth(
    tmp_path: Path, lengths: tuple[int, ...], changes: dict[str, Any]
) -> None:
    run = over_n(tmp_path, lengths=lengths, out_from=None, **changes)
    assert subject_of(wall, run).card is None
    assert subject_of(memory, run).card is None


def test_a_case_without_a_prediction_has_no_height(tmp_path: Path) -> None:
    (line,) = chart(over_n(tmp_path, predicted_peak_bytes=None)).panels[0][1]
    assert (line.points[-1].end, line.points[-1].need_bytes) == ("oom", None)
    assert line.between == (4096, 8192)


@pytest.mark.parametrize(
    ("lengths", "grows"),
    [
        ((64, 128, 256, 512), "quadratic in the end: twice N = 512 takes 3.52 times the memory."),
        (LENGTHS, "quadratic: twice the length, four times the memory."),
    ],
)
def test_four_times_the_memory_is_said_only_of_lengths_where_it_is_so(
    tmp_path: Path, lengths: tuple[int, ...], grows: str
) -> None:
    """64 N^2 + 10240 N in all: at N = 512 the linear part still is a quarter."""
    run = over_n(tmp_path, lengths=lengths, out_from=None, of_run={"memory_bytes": None})
    assert grows in sentence(memory, run)


def test_without_a_polynomial_only_what_was_measured_is_said(tmp_path: Path) -> None:
    """Three lengths show no polynomial: what twice the longest takes was told all the same."""
    lengths, unlimited = (512, 1024, 2048), {"memory_bytes": None}
    run = over_n(tmp_path, ("fused", "sdpa"), lengths, of_run=unlimited, predicted_peak_bytes=None)
    text = sentence(memory, run)
    assert "about quadratic: " in text
    assert "times the memory from N = 1 024 to 2 048." in text
    assert "twice" not in text
    assert "sdpa grows about linearly and fits at 2 048" in text
