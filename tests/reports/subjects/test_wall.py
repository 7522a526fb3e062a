"""reports/subjects/wall.py: the sentence on where memory ends, and the chart's points."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.areas import Areas
from attnbench.reports.elements import Figure, Panel, Series
from attnbench.reports.subjects import memory, wall
from tests.made_runs import GIB, LENGTHS, grid, over_n, quickstart, retold, row, write_run
from tests.reports.rendering import card_of, subject_of


def panels(run: Path) -> tuple[Panel, ...]:
    """Of the fewest heads first."""
    told = subject_of(wall, run)
    figures = (one for one in (*told.blocks, told.card.picture) if isinstance(one, Figure))
    return tuple(panel for one in figures for panel in one.panels)


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


def test_limits_of_the_whole_gpu_are_calculated_and_marked_as_such(tmp_path: Path) -> None:
    """64 N^2 + 10240 N of 80 GiB, with a budget of 2 GiB."""
    run = retold(over_n(tmp_path), device="cuda", device_memory_bytes=80 * GIB)
    (limit,) = re.findall(
        r"Calculated for the whole GPU .*?N.=.([\d\s]+) for fused", card_of(wall, run).note
    )
    n = int(re.sub(r"\D", "", limit))
    assert 64 * n * n + 10240 * n <= 80 * GIB < 64 * (n + 1) ** 2 + 10240 * (n + 1)


def test_a_cpu_has_no_whole_gpu(tmp_path: Path) -> None:
    assert "Calculated" not in card_of(wall, over_n(tmp_path)).note


# ---- memory as area ------------------------------------------------------------------------------


def areas(run: Path) -> Areas:
    found = card_of(wall, run).areas
    assert found is not None
    return found


def test_areas_are_to_scale_and_burst_the_frame_where_the_budget_ends(tmp_path: Path) -> None:
    found = areas(quickstart(tmp_path))
    assert len(found.lengths) == 4
    assert all(long == 2 * short for short, long in pairwise(found.lengths))
    for one in found.rows:
        for n in found.lengths:
            area = one.area(n, found.budget)
            assert area.wide * area.tall == pytest.approx(one.at(n) / found.budget)
            bursts = area.wide > one.frame * (1 + 1e-9) or area.tall > (1 + 1e-9) / one.frame
            assert bursts is ("beyond" in area.look) is (one.at(n) > found.budget)
            assert (n in one.known) is ("calculated" not in area.look)
    assert found.rows[0].area(found.lengths[-1], found.budget).look.endswith("beyond")


@pytest.mark.parametrize("heads", [(1, 8), (8,), (1,), (2,)])
def test_how_many_heads_scores_are_kept_follows_from_the_bytes(
    heads: tuple[int, ...], tmp_path: Path
) -> None:
    """Two copies of one of two heads' scores are as many as one of both."""
    copies, budget = {"mine": max(heads), "yours": 1, "theirs": 0}, max(heads) * 400 << 20
    cases = grid(tuple(copies), LENGTHS, heads)
    rows = []
    for one in cases:
        kept = one["heads"] if one["backend"] == "mine" else copies[one["backend"]]
        peak = 8 * kept * one["seq_len"] ** 2 + 4096 * one["seq_len"]
        fits = peak < budget
        rows.append(row(one, "ok" if fits else "oom", predicted_peak_bytes=peak))
        rows[-1]["peak_bytes"] = peak if fits else None
    found = areas(write_run(tmp_path, cases, rows, memory_bytes=budget))
    wanted = {
        8: ((8, "all 8 heads at once"), (1, "one head at a time")),
        2: ((1, ""), (1, "")),
        1: ((1, "one head"), (1, "one head")),
    }[max(heads)]
    assert {one.backend: (one.squares, one.keeps) for one in found.rows} == {
        "mine": wanted[0],
        "yours": wanted[1],
        "theirs": (0, "no score matrix"),
    }


@pytest.mark.parametrize(
    "changes", [{"out_from": None}, {"predicted_peak_bytes": None, "workspace_bytes": 1 << 26}]
)
def test_without_a_wall_or_a_formula_there_is_the_curve_alone(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    run = over_n(tmp_path, **changes)
    told = [subject_of(one, run).card for one in (wall, memory)]
    (card,) = filter(None, told)
    assert card.areas is None
    assert isinstance(card.picture, Figure)
