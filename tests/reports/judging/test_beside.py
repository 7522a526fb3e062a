"""reports/judging: a backend from outside over the baseline that was timed beside it, and by way of
that over others.
"""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from random import Random

import pytest

from attnbench.harness.stats.intervals import ratio_interval
from attnbench.reports.comparison.compare import compare_backends
from attnbench.reports.comparison.document import as_json
from attnbench.reports.comparison.sentences import doubts, lines
from attnbench.reports.data.beside import link
from attnbench.reports.data.row_groups import LoadedRow, Row
from attnbench.reports.judging.over import differing_baselines
from attnbench.reports.judging.pair import time_ratio
from attnbench.reports.judging.ratio import Ratio
from attnbench.reports.subjects import own
from attnbench.reports.subjects._race import race
from attnbench.reports.words import CONFIRMED
from tests.made_runs import Made, from_outside, loaded, run_of
from tests.reports.rendering import card_of, one_of, rows_of

MINE, OTHER = "attend@mine", "attend@other"
INSIDE = {"sdpa": 10.0, "fused": 20.0}
SIMULATED = 400


def linked(pairs: Sequence[Made]) -> dict[str, Row]:
    rows = [LoadedRow(loaded(row)) for _, row in pairs]
    link(rows)
    return {row["backend"]: row for row in rows}


def test_over_its_baseline_it_is_paired_with_what_was_timed_beside_it() -> None:
    rows = linked(from_outside(INSIDE, {MINE: (28.0, 14.0)}, Random(1)))
    mine, sdpa = rows[MINE], rows["sdpa"]
    found = time_ratio(mine, sdpa)
    known = ratio_interval(mine["block_ms"], mine["beside_ms"])
    assert (found.value, found.low, found.high) == (known.value, known.low, known.high)
    assert (found.paired, found.indirect) == (True, False)
    assert found.value == pytest.approx(2.0, rel=0.05)
    inverse = time_ratio(sdpa, mine)
    assert (inverse.low, inverse.high) == pytest.approx((1 / found.high, 1 / found.low))


def test_over_others_it_is_a_ratio_of_ratios_and_says_so() -> None:
    outside = {MINE: (28.0, 14.0), OTHER: (5.0, 10.0)}
    rows = linked(from_outside(INSIDE, outside, Random(2)))
    pairs = ((MINE, "fused", 1.0), ("fused", MINE, 1.0), (MINE, OTHER, 4.0), ("fused", OTHER, 4.0))
    for one, other, truth in pairs:
        found = time_ratio(rows[one], rows[other])
        assert found.value == pytest.approx(truth, rel=0.05)
        assert (found.paired, found.by_way_of) == (True, "sdpa")
        assert found.text.endswith(", by way of sdpa")
    assert not time_ratio(rows["fused"], rows["sdpa"]).indirect


@pytest.mark.parametrize(("processes", "truth"), [(3, 1.0), (5, 1.2), (9, 1.2)])
def test_a_ratio_of_ratios_covers_the_truth(processes: int, truth: float) -> None:
    random, covered, widths = Random(54), 0, []
    for _ in range(SIMULATED):
        made = from_outside(
            {"sdpa": 10.0, "fused": 10.0}, {MINE: (14 * truth, 14)}, random, processes
        )
        rows = linked(made)
        found = time_ratio(rows[MINE], rows["fused"])
        covered += found.low <= truth <= found.high
        widths.append(found.high / found.low)
    assert covered >= 0.95 * SIMULATED
    assert sorted(widths)[SIMULATED // 2] < 1.25, "workers that differ by 20 % cancel"


def test_one_process_of_each_worker_allows_twice_for_what_processes_differ_by() -> None:
    rows = linked(from_outside(INSIDE, {MINE: (20.0, 10.0)}, Random(3), processes=1))
    beside, indirect = (time_ratio(rows[MINE], rows[name]) for name in ("sdpa", "fused"))
    assert beside.high / beside.value == pytest.approx(1.3, rel=0.01)
    assert indirect.high / indirect.value == pytest.approx(1.3**2**0.5, rel=0.02)
    assert indirect.doubts == ("one_process",)


def test_without_the_baseline_s_row_two_workers_are_compared_by_their_processes() -> None:
    rows = linked(from_outside({"fused": 20.0}, {MINE: (28.0, 14.0)}, Random(4)))
    found = time_ratio(rows[MINE], rows["fused"])
    assert (found.paired, found.indirect, found.doubts) == (False, False, ())
    assert isfinite(found.low)


def test_equal_sessions_of_two_workers_are_not_paired() -> None:
    made = [
        (case, row | {"session": "one"})
        for case, row in from_outside(INSIDE, {MINE: (28.0, 14.0)}, Random(5))
    ]
    rows = linked(made)
    assert time_ratio(rows[MINE], rows["fused"]).indirect


def run_with(parent: Path, beside_ms: float) -> Path:
    made = from_outside(INSIDE, {MINE: (2 * beside_ms, beside_ms)}, Random(6), processes=9)
    return run_of(parent, *made, baseline="sdpa")


def test_a_baseline_that_took_another_time_beside_it_is_told_on_the_page_and_by_compare(
    tmp_path: Path,
) -> None:
    same, other = (run_with(tmp_path / str(ms), ms) for ms in (10.0, 16.0))
    said = f"Beside {MINE}, sdpa took 1."
    for run, is_told in ((same, False), (other, True)):
        compared = [*lines(compare_backends(run, "sdpa"))]
        page = card_of(own, run).sentence
        assert (
            any(one.startswith(said) and one.endswith(" times its time.") for one in compared)
            == is_told
        )
        assert (said in page) == is_told
        assert bool([*differing_baselines(rows_of(run))]) == is_told


def test_compare_against_another_backend_says_that_it_is_indirect(tmp_path: Path) -> None:
    found = compare_backends(run_with(tmp_path, 16.0), "fused")
    (mine,) = (one for one in found.of("latency") if one.new["backend"] == MINE)
    assert "indirect" in mine.reasons
    assert any("a ratio of ratios" in one for one in doubts(found))
    assert '"by_way_of": "sdpa"' in as_json(found)


def test_the_pairs_of_a_worker_tell_how_pairs_of_a_run_differ(tmp_path: Path) -> None:
    rows = rows_of(
        run_of(
            tmp_path,
            *from_outside(INSIDE, dict.fromkeys((MINE, OTHER, "mine"), (5.0, 10.0)), Random(8)),
        )
    )
    assert all(isinstance(row["pair_noise_ratio"], float) for row in rows)
    found = time_ratio(rows[-1], one_of(rows, backend="sdpa"))
    assert isinstance(found, Ratio)
    assert found.contrast.prior is not None


def test_the_first_of_a_race_is_first_by_ratios_where_a_worker_was_slow(tmp_path: Path) -> None:
    rows = rows_of(run_of(tmp_path, *from_outside(INSIDE, {MINE: (14.0, 28.0)}, Random(7))))
    mine = one_of(rows, backend=MINE)
    assert mine["latency_ms"] > one_of(rows, backend="sdpa")["latency_ms"]
    found = race(rows)
    assert [row["backend"] for row in found.ranking] == [MINE, "sdpa", "fused"]
    assert found.mark == CONFIRMED
