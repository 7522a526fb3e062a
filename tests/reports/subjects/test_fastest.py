"""reports/subjects/fastest.py and _race.py: a winner must beat every other by more than noise."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.elements import Table
from attnbench.reports.subjects import fastest
from attnbench.reports.subjects._choice import Choices, choices, take
from attnbench.reports.subjects._race import NOT_JUDGED, race, races
from attnbench.reports.words import NOISY
from tests import made_runs
from tests.made_runs import case, grid, problem, row, write_run
from tests.reports.rendering import card_of, rows_of

THREE = {  # c was slower in one block, and faster in another
    "a": [[[1.0], [1.01], [1.0]]],
    "b": [[[1.5], [1.52], [1.51]]],
    "c": [[[0.5], [9.0], [2.0]]],
}


def run_with(parent: Path, blocks: dict[str, list[list[list[float]]]]) -> Path:
    cases = [case(backend, problem(128)) for backend in blocks]
    rows = [row(one, block_ms=blocks[one["backend"]]) for one in cases]
    return write_run(parent, cases, rows)


def test_the_fastest_must_beat_every_other_backend_and_not_only_the_second(tmp_path: Path) -> None:
    rows = rows_of(run_with(tmp_path, THREE))
    found = race(rows)
    assert [row["backend"] for row in found.ranking] == ["a", "b", "c"]
    assert found.margins[0].word == "more"
    assert not found.clear
    assert [row["backend"] for row, _ in found.close] == ["c"]
    assert found.tied == []
    assert found.mark == NOISY
    assert found.rival[1].value == pytest.approx(2.07, abs=0.01)


# ---- the card and the table of every problem -----------------------------------------------------


def test_beside_other_work_no_winner_is_named(tmp_path: Path) -> None:
    """Beside ten busy processes on two cores one backend seemed 2,576 times as slow."""
    cases = grid(("fused", "sdpa"), (256, 512))
    blocks = {"fused": [[[100.0]] * 9], "sdpa": [[[1.0]] * 9]}
    rows = [
        row(one, contended_blocks=9, blocks=9, block_ms=blocks[one["backend"]]) for one in cases
    ]
    found = card_of(fastest, write_run(tmp_path, cases, rows))
    assert found.sentence == NOT_JUDGED
    assert "confirmed" not in found.sure
    assert all(line[1].startswith("not judged") for line in found.decisions.texts)
    calm = [{**one, "contended_blocks": 0} for one in rows]
    quiet = card_of(fastest, write_run(tmp_path / "calm", cases, calm))
    assert "sdpa takes" in quiet.sentence
    assert "other work" not in f"{quiet.sentence}{quiet.note}".lower()


def test_a_cell_has_the_paired_ratio_of_the_verdict_not_that_of_the_medians() -> None:
    def timed(name: str, call_ms: float, latency_ms: float) -> dict[str, Any]:
        made = made_runs.row(case(name, problem(256)), "ok", block_ms=[[[call_ms]] * 5])
        return made | {"latency_ms": latency_ms}

    first, other = timed("fused", 1.0, 1.0), timed("sdpa", 2.0, 9.0)
    for one in (other, other | {"exactness": "approximate"}):
        cell = fastest.beside(one, race([first, one]))
        assert "×2.00" in cell
        assert "×9" not in cell


def in_processes(*levels_ms: float) -> list[list[list[float]]]:
    return [[[level_ms]] for level_ms in levels_ms]


# ---- which one to take ---------------------------------------------------------------------------


def taken(
    parent: Path, times_ms: dict[tuple[str, int], float | None], **changes: Any
) -> Choices | None:
    """Each backend at each length takes so long, or runs out of memory."""
    cases = [case(backend, problem(n)) for backend, n in times_ms]
    rows = [
        row(one, "oom")
        if time_ms is None
        else row(
            one, block_ms=in_processes(*[time_ms * (1 + x / 500) for x in range(8)]), **changes
        )
        for one, time_ms in zip(cases, times_ms.values(), strict=True)
    ]
    return choices(rows_of(write_run(parent, cases, rows)))


def at_worst(found: Choices | None) -> list[tuple[str, float, int, int]]:
    """Of each backend, the first to take first: its worst ratio, and where it ran and did not."""
    assert found is not None
    return [
        (one.backend, round(one.slowest.value, 2), len(one.times), one.unfit) for one in found.every
    ]


def test_the_first_to_take_runs_in_most_problems_and_is_never_far_from_the_fastest(
    tmp_path: Path,
) -> None:
    found = taken(
        tmp_path,
        {("a", 128): 1.1, ("b", 128): 1.0, ("a", 256): 2.0, ("b", 256): 5.0, ("a", 512): 9.0}
        | {("b", 512): None},
    )
    assert at_worst(found) == [("a", 1.1, 3, 0), ("b", 2.5, 2, 1)]
    assert [one.n for one in found.every[0].only] == [512]


def test_one_that_is_the_fastest_nowhere_is_said_to_be_never_far_from_it(tmp_path: Path) -> None:
    times: dict[tuple[str, int], float | None] = {("a", 128): 1.1, ("b", 128): 1.0}
    times |= {("c", 128): None, ("a", 256): 2.2, ("b", 256): None, ("c", 256): 2.0}
    found = taken(tmp_path, times)
    assert found is not None
    said = "Take a: never more than 1.10 times the fastest's time"
    assert take(found).startswith(said)


def test_what_is_far_off_somewhere_comes_later(tmp_path: Path) -> None:
    far = {("a", 128): 3.0, ("b", 128): 1.0, ("a", 256): 1.0, ("b", 256): 4.0}
    assert at_worst(taken(tmp_path / "far", far)) == [("a", 3.0, 2, 0), ("b", 4.0, 2, 0)]
    several = {("a", 64): 2.0, ("b", 64): 1.0, ("c", 64): 9.0, ("c", 128): 0.5, ("c", 256): 8.0}
    found = at_worst(taken(tmp_path / "several", far | several))
    assert found == [("b", 4.0, 3, 0), ("a", 6.0, 3, 0), ("c", 9.0, 3, 0)]
    busy = taken(tmp_path / "busy", far, contended_blocks=8)
    assert busy is not None
    assert not busy.judged
    assert taken(tmp_path / "alone", {("a", 128): 1.0}) is None


def test_the_regret_counts_from_what_is_fastest_in_pairs_of_blocks(tmp_path: Path) -> None:
    """By its latency a is first; beside b it is slower in four of five processes."""
    blocks = {"a": in_processes(1, 2, 3, 10, 11), "b": in_processes(0.9, 1.8, 3.1, 9, 10)}
    rows = rows_of(run_with(tmp_path, blocks))
    (raced,) = races(rows)
    assert [row["backend"] for row in raced.race.ranking] == ["a", "b"]
    found = choices(rows)
    assert [(one.backend, one.slowest.ratio is None) for one in found.every] == [
        ("b", True),
        ("a", False),
    ]
    assert found.every[1].slowest.value == pytest.approx(10 / 9)  # the median pair


def test_every_variant_stands_in_the_table_of_times_or_says_why_not(tmp_path: Path) -> None:
    """Also what is not ranked: an approximation, what did not fit, and what nobody timed."""
    names = [
        f"triton[block_m={2**size},num_warps={warps}]"
        for size in (4, 5, 6)
        for warps in (2, 4, 8, 16)
    ]
    odd = {
        names[0]: {"exactness": "approximate"},
        names[1]: {"latency_ms": None, "block_ms": None},
    }
    cases = grid(names, (512,))
    ended = [
        row(one, "oom") if one["backend"] == names[2] else row(one, **odd.get(one["backend"], {}))
        for one in cases
    ]
    table = card_of(fastest, write_run(tmp_path, cases, ended)).picture
    assert isinstance(table, Table)
    told = dict(table.texts)
    assert told.keys() == set(names)
    assert [told[names[1]], told[names[2]]] == ["not timed", "out of memory"]
    assert "approximate" in told[names[0]]
