"""reports/subjects/wall.py: the sentence on where memory ends, and the chart's points."""

import re
from pathlib import Path

from attnbench.reports.elements import Panel, Series
from attnbench.reports.subjects import wall
from tests.made_runs import GIB, LENGTHS, grid, over_n, quickstart, retold, row, write_run
from tests.reports.rendering import card_of, subject_of


def panels(run: Path) -> tuple[Panel, ...]:
    picture = card_of(wall, run).picture
    return picture.panels


def measured(panel: Panel, backend: str = "fused") -> Series:
    return next(one for one in panel.series if (one.backend, one.kind) == (backend, "measured"))


def ends(panel: Panel, backend: str) -> dict[str, dict[float, float | None]]:
    """By kind of series: its points with a height."""
    return {
        one.kind: {x: y for x, y in zip(one.x, one.y, strict=True) if y is not None}
        for one in panel.series
        if one.backend == backend
    }


def test_a_crossing_is_the_last_n_within_the_budget(tmp_path: Path) -> None:
    """64 N^2 + 4096 N and inputs of 6144 N bytes against 2 GiB."""

    def need(n: int) -> int:
        return 64 * n * n + 10240 * n

    stop = measured(panels(over_n(tmp_path))[0]).stop
    assert need(int(stop)) <= 2 * GIB < need(int(stop) + 1)


def test_no_crossing_is_computed_from_a_formula_that_a_measurement_contradicts(
    tmp_path: Path,
) -> None:
    cases = grid(("fused",), LENGTHS)
    rows = [row(one, "oom" if one["seq_len"] == 8192 else "ok") for one in cases]
    rows[1]["peak_bytes"] += 1 << 20
    run = write_run(tmp_path, cases, rows)
    line = measured(panels(run)[0])
    assert (line.stop, line.ending) == (None, "up to 4k, not 8k")


def test_no_crossing_is_computed_outside_the_lengths_that_were_tried(tmp_path: Path) -> None:
    """The formula would end at 5713, but 4096 did not fit."""
    line = measured(panels(over_n(tmp_path, out_from=4096))[0])
    assert (line.stop, line.ending) == (None, "up to 2k, not 4k")


def test_a_case_that_crashed_is_drawn_by_formula(tmp_path: Path) -> None:
    found = ends(panels(quickstart(tmp_path))[0], "naive")
    assert 2048 in found["formula"]
    assert not any(2048 in points for kind, points in found.items() if kind != "formula")


UNKNOWN = {"peak_bytes": None, "predicted_peak_bytes": None}


def test_a_case_without_a_prediction_is_drawn_at_the_budget(tmp_path: Path) -> None:
    (panel,) = panels(over_n(tmp_path, predicted_peak_bytes=None))
    assert ends(panel, "fused")["failed"] == {8192: 2 * GIB}
    assert 8192 not in ends(panel, "fused").get("formula", {})
    assert measured(panel).ending == "up to 4k, not 8k"


def test_the_wall_of_the_whole_card_is_calculated_and_marked_as_such(tmp_path: Path) -> None:
    """64 N^2 + 10240 N of 80 GiB, with a budget of 2 GiB."""
    run = retold(over_n(tmp_path), device="cuda", device_memory_bytes=80 * GIB)
    told = subject_of(wall, run)
    (limit,) = re.findall(
        r"Calculated limits of the whole GPU .*?N.=.([\d\s]+) for fused", told.card.note
    )
    n = int(re.sub(r"\D", "", limit))
    assert 64 * n * n + 10240 * n <= 80 * GIB < 64 * (n + 1) ** 2 + 10240 * (n + 1)
    measured_ones, whole = told.card.picture.panels
    assert (measured_ones.line[0], whole.line[0]) == (2 * GIB, 80 * GIB)
    longest = {
        kind: max(max(one.x) for one in whole.series if one.kind == kind)
        for kind in ("measured", "formula")
    }
    assert longest["measured"] < n == longest["formula"]


def test_a_cpu_has_no_whole_card(tmp_path: Path) -> None:
    assert "Calculated" not in card_of(wall, over_n(tmp_path)).note
