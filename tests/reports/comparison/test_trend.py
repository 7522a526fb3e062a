"""reports/comparison/trend.py: cases over made-up runs."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.reports.comparison.trend import Trend, trend
from attnbench.reports.comparison.trend_text import document, headline, sentences
from tests.made_runs import grid, read_rows, retold, row, starts, write_rows, write_run

CASES = grid(("fused", "sdpa", "naive"), (256,))
FUSED, SDPA, NAIVE = range(3)
DRIFT, PROCESS, BLOCK = 0.15, 0.005, 0.002


def series(
    folder: Path,
    factors: Sequence[Sequence[float]],
    drift: float = DRIFT,
    more: Callable[[int], dict[str, Any]] = lambda number: {},
) -> list[Path]:
    """A run a day, on a machine that drifts; `factors`: of each run those of the three backends."""
    random, paths = Random(1), []
    for number, of in enumerate(factors):
        level_ms = 10 * math.exp(random.gauss(0, drift))
        shared = [[level_ms * math.exp(random.gauss(0, PROCESS)) for _ in "12"] for _ in range(4)]
        rows = [
            row(
                one,
                block_ms=[
                    [[ms * factor * math.exp(random.gauss(0, BLOCK))] for ms in process]
                    for process in shared
                ],
                session=f"s{number}",
                processes=4,
                conditions=None,
                **more(number),
            )
            for one, factor in zip(CASES, of, strict=True)
        ]
        day = f"2026-11-{number + 1:02}T09:30:00Z"
        run = write_run(folder / str(number), CASES, rows, started_utc=day)
        name = f"202611{number + 1:02}T093000Z-quickstart-0000000{number % 10}"
        paths.append(retold(run, git=f"c{number:011}").rename(folder / name))
        meta = json.loads((paths[-1] / "run.json").read_text())
        (paths[-1] / "run.json").write_text(json.dumps({**meta, "run": name}))
    return paths


def named(found: Trend) -> list[tuple[str, int, str]]:
    return [
        (one.case.backend, change.at, change.word) for one, change in found.changes(confirmed=True)
    ]


def test_a_step_is_named_with_its_run_commit_and_interval_though_the_machine_drifts(tmp_path):
    runs = series(tmp_path, [(1, 1.12 if number >= 9 else 1, 2) for number in range(16)])
    found = trend(runs)
    assert found.reference == "fused"  # the scenario's baseline
    assert named(found) == [("sdpa", 9, "more")]
    ((_, change),) = found.changes(confirmed=True)
    assert 1.10 < change.ratio.low < 1.12 < change.ratio.high < 1.14
    (said,) = sentences(found)
    assert said.startswith(
        "sdpa at N\u00a0=\u00a0256: slower from 20261110T093000Z-quickstart-00000009"
        " (commit c0000000) on, by ×1.1"
    )
    assert "time changed in 1 of 3 cases, bytes in none" in headline(found)


def test_ratios_are_to_the_first_run_or_the_base_and_those_of_a_changed_case_follow(tmp_path):
    runs = series(tmp_path, [(1, 1.2 if number >= 5 else 1, 2) for number in range(10)])
    ratios = [one.value for one in trend(runs).cases[SDPA].ratios if one]
    assert ratios[0] == 1.0
    assert ratios[1:] == pytest.approx([1.0] * 4 + [1.2] * 5, rel=0.03)
    found = trend(runs, runs[7])
    ratios = [one.value for one in found.cases[SDPA].ratios if one]
    assert ratios == pytest.approx([1 / 1.2] * 5 + [1.0] * 5, rel=0.03)
    assert found.comparison.base.path == runs[7]
    assert named(found) == [("sdpa", 5, "more")]


def test_a_series_without_a_change_names_none_and_small_ones_are_the_same(tmp_path):
    runs = series(tmp_path, [(1, 1.02 if number >= 8 else 1, 2) for number in range(16)])
    assert named(trend(runs)) == []


def test_if_the_reference_changes_all_others_change_the_other_way_and_that_is_said(tmp_path):
    runs = series(tmp_path, [(1.2 if number >= 8 else 1, 1, 2) for number in range(16)])
    found = trend(runs)
    assert named(found) == [("sdpa", 8, "less"), ("naive", 8, "less")]
    assert any("If fused itself changes, all others change the other way" in n for n in found.notes)
    assert named(trend(runs, against="naive")) == [("fused", 8, "more")]


def test_without_a_reference_a_change_is_confirmed_only_beyond_what_runs_differ_by(tmp_path):
    def alone(folder: Path, step: float) -> list[Path]:
        paths = series(folder, [(step if n >= 8 else 1, 1, 1) for n in range(16)], drift=0.01)
        for path in paths:
            write_rows(path, read_rows(path)[:1])
        return paths

    runs = alone(tmp_path, 1.3)
    found = trend(runs)
    assert (found.reference, named(found)) == ("", [])
    assert [change.at for _, change in found.changes(confirmed=False)] == [8]
    assert "how much is not known" in found.notes[-1]
    starts(tmp_path, run_sd=0.01, count=6)
    assert named(trend(runs)) == [("fused", 8, "more")]


def test_bytes_are_exact_in_every_run(tmp_path):
    runs = series(
        tmp_path, [(1, 1, 1)] * 4, more=lambda number: {"peak_bytes": 1000 + (number == 2)}
    )
    found = trend(runs)
    assert [one.more_bytes for one in found.cases] == [{2: 1, 3: -1}] * 3
    assert found.cases[0].peaks == [1000, 1000, 1001, 1000]
    assert "bytes in 3" in headline(found)


def test_runs_of_other_machines_versions_and_cases_are_kept_apart_in_one_remark(tmp_path):
    runs = series(tmp_path, [(1, 1, 1)] * 5)
    retold(runs[0], cpu="Another CPU")
    retold(runs[1], torch="2.12.0")
    other = grid(("fused",), (64,))
    write_run(tmp_path / "other", other, [row(one) for one in other], started_utc="2026-11-02")
    found = trend([*runs, *(tmp_path / "other").iterdir()])
    assert [side.path for side in found.runs] == runs[2:]
    (remark,) = (one for one in found.notes if "kept apart" in one)
    assert remark.startswith("3 runs kept apart")
    for why in ("cpu Another CPU", "torch 2.12.0", "no case in common"):
        assert why in remark
    with pytest.raises(BadInput, match=r"torch 2\.12\.0, unlike the newest run"):
        trend(runs, runs[1])


def test_runs_without_times_and_broken_ones_are_named(tmp_path):
    runs = series(tmp_path, [(1, 1, 1)] * 4)
    write_rows(runs[1], [one | {"block_ms": None} for one in read_rows(runs[1])])
    (runs[2] / "rows.jsonl").write_text("nonsense\n")
    found = trend(runs)
    assert len(found.runs) == 3
    assert found.cases[SDPA].ratios[1] is None
    assert f"Without times: {runs[1].name}." in found.notes
    assert [note for note in found.notes if note.startswith(f"Left out: {runs[2]}/rows.jsonl:1")]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"against": "flash"}, "--against: no times of 'flash' in .*; there are: fused, sdpa"),
        ({"count": 1}, "1 run; wanted two or more"),
        ({"count": 0}, "0 runs; wanted two or more"),
    ],
)
def test_what_makes_no_trend_is_refused(tmp_path, changes, said):
    count = changes.pop("count", 3)
    with pytest.raises(BadInput, match=said):
        trend(series(tmp_path, [(1, 1, 1)] * 3)[:count], **changes)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (7, "Of 7 runs with 2 timed cases, chance alone may order times as any change would: a"
         " change is found for sure from 10 runs on, 5 of them on either side."),
        (11, "Of 11 runs with 2 timed cases, a change of a time is found for sure only with 4 or"
         " more before it and 4 or more from it on."),
    ],
)  # fmt: skip
def test_what_few_runs_can_show_is_said(tmp_path, count, said):
    found = trend(series(tmp_path, [(1, 1, 2)] * count))
    assert [note.startswith(said) for note in found.notes].count(True) == 1


def test_as_many_runs_as_are_said_to_be_enough_find_a_large_change_and_fewer_may_not(tmp_path):
    for number, (count, later) in enumerate([(10, 5), (11, 4), (9, 4)]):
        factors = [(1, 1.5 if at >= count - later else 1, 2) for at in range(count)]
        found = named(trend(series(tmp_path / str(number), factors)))
        assert found == ([("sdpa", count - later, "more")] if count >= 10 else [])


def test_a_document_has_a_value_of_every_case_in_every_run(tmp_path):
    more = lambda number: {"peak_bytes": 1000 + (number == 2)}  # noqa: E731
    factors = [(1, 1.12 if number >= 5 else 1, 2) for number in range(10)]
    made = document(trend(series(tmp_path, factors, more=more)))
    (sdpa,) = (one for one in made["cases"] if one["backend"] == "sdpa")
    assert (made["base"], made["against"], len(made["runs"])) == (0, "fused", 10)
    assert [(one["at"], one["verdict"]) for one in sdpa["changes"]] == [(5, "slower")]
    assert sdpa["more_bytes"] == {2: 1, 3: -1}
    assert [one["ratio"] > 1.05 for one in sdpa["times"]] == [False] * 5 + [True] * 5
    (fused,) = (one for one in made["cases"] if one["backend"] == "fused")
    assert fused["times"] == [None] * 10  # it is what the others are held against
