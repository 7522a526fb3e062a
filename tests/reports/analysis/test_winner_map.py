"""reports/analysis/winner_map.py: who is fastest on which problem, and where nobody is."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.analysis.winner_map import winner_map
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.row_groups import Row, records
from tests.made_runs import case, many_problems, problem, row, write_run


def rows_of(
    parent: Path, *planned: tuple[dict[str, Any], str, list[list[float]] | None]
) -> list[Row]:
    rows = [
        row(one, status, **({} if blocks is None else {"block_ms": [blocks]}))
        for one, status, blocks in planned
    ]
    return records(frame([read_run(write_run(parent, [one for one, _, _ in planned], rows))]))


def blocks(time_ms: float) -> list[list[float]]:
    return [[time_ms * noise] for noise in (0.99, 1.0, 1.01, 1.0)]


def test_the_winner_changes_along_n_and_the_margin_has_an_interval(tmp_path: Path) -> None:
    times = {"a": (1.0, 8.0), "b": (2.0, 4.0)}
    planned = [
        (case(name, problem(n)), "ok", blocks(times[name][at]))
        for at, n in enumerate((128, 256))
        for name in times
    ]
    short, long = winner_map(rows_of(tmp_path, *planned))
    assert (short.winner, short.runner_up, short.kind, short.seq_len) == ("a", "b", "won", 128)
    assert (long.winner, long.kind, long.axis) == ("b", "won", "heads")
    assert long.margin is not None
    assert long.margin.low <= 2 <= long.margin.high


def test_overlapping_intervals_leave_it_undecided_between_those_backends(
    tmp_path: Path,
) -> None:
    wild = [[1.0], [1.2], [0.9], [1.1]]
    planned = [
        (case(name, problem(128)), "ok", found)
        for name, found in (("a", wild[::-1]), ("b", wild), ("c", blocks(9.0)))
    ]
    (cell,) = winner_map(rows_of(tmp_path, *planned))
    assert cell.kind == "undecided"
    assert set(cell.tied) == {"a", "b"}


def test_failures_are_listed_by_status_and_a_problem_that_nobody_finished_has_no_winner(
    tmp_path: Path,
) -> None:
    planned = [(case(name, problem(n)), status, None) for n, name, status in _ENDINGS]
    alone, nobody = winner_map(rows_of(tmp_path, *planned))
    assert (alone.kind, alone.winner, alone.runner_up, alone.margin) == (
        "alone",
        "a",
        None,
        None,
    )
    assert alone.failed == {"oom": ("b",), "crashed": ("c",)}
    assert (nobody.kind, nobody.winner) == ("nobody", None)
    assert nobody.failed == {"oom": ("a", "b"), "predicted_oom": ("c",)}


_ENDINGS = [
    *((128, name, status) for name, status in (("a", "ok"), ("b", "oom"), ("c", "crashed"))),
    *((256, name, status) for name, status in (("a", "oom"), ("b", "oom"), ("c", "predicted_oom"))),
]


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        ([{}], "heads"),
        ([{"d_model": 256}, {"d_model": 512}, {"d_model": 1024}], "d_model"),
        ([{"heads": 1}, {"heads": 8}, {"dtype": "bf16"}], "heads"),
        ([{"batch": 1}, {"batch": 2}], "batch"),
    ],
)
def test_the_second_axis_is_the_one_that_varies_most_else_heads(
    tmp_path: Path, shapes: list[dict[str, Any]], axis: str
) -> None:
    planned = [(case("a", problem(128, **shape)), "ok", None) for shape in shapes]
    assert {cell.axis for cell in winner_map(rows_of(tmp_path, *planned))} == {axis}


def test_other_axes_that_vary_make_maps_of_their_own(tmp_path: Path) -> None:
    cells = winner_map(records(frame([read_run(many_problems(tmp_path))])))
    assert len(cells) == 32
    places = [(cell.map, cell.seq_len, cell.value) for cell in cells]
    assert len(set(places)) == 32
    assert len({cell.map for cell in cells}) == 8


def test_no_rows_are_no_cells() -> None:
    assert winner_map([]) == []
