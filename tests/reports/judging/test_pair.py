"""reports/judging/pair.py: paired within a session, otherwise marked as unpaired."""

from math import nan
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.comparison.compare import compare_backends
from attnbench.reports.data.row_groups import Row
from attnbench.reports.judging.pair import time_ratio
from attnbench.reports.judging.ratio import Ratio
from attnbench.reports.subjects._race import race
from attnbench.reports.words import CONFIRMED, NOISY, NOT_DECIDED, SAME, SEEN, Mark
from tests.made_runs import quickstart
from tests.reports.rendering import one_of, rows_of

KEPT = Path(__file__).parents[3] / "results/reference"
PAIRS = 364  # approved: every backend against every other, of all kept runs


def is_clear(ratio: Ratio) -> bool:
    return ratio.mark == CONFIRMED


def fused_and_sdpa(parent: Path) -> tuple[Row, Row]:
    rows = rows_of(quickstart(parent))
    fused, sdpa = (one_of(rows, backend=name, seq_len=1024, heads=8) for name in ("fused", "sdpa"))
    return fused, sdpa


def in_five_processes(row: Row) -> Row:
    (blocks,) = row["block_ms"]
    factors = {"fused": (1, 1.01, 1.02, 1.04, 1.03), "sdpa": (1, 1.03, 1.01, 1.02, 1.05)}
    every = [
        [[call * factor for call in block] for block in blocks]
        for factor in factors[row["backend"]]
    ]
    return row | {"block_ms": every}


def test_the_ratio_of_one_process_allows_for_what_processes_differ_by(tmp_path: Path) -> None:
    fused, _ = fused_and_sdpa(tmp_path)
    assert (fused["process_noise_ratio"], fused["process_noise_source"]) == (
        pytest.approx(0.3),
        "assumed",
    )

    def against(times: float, **changes: Any) -> Ratio:
        slower = [[[call * times for call in block] for block in fused["block_ms"][0]]]
        other = fused | {"backend": "other", "block_ms": slower} | changes
        return time_ratio(other, fused | changes)

    assert (is_clear(against(1.25)), is_clear(against(1.4))) == (False, True)
    assert against(1.25).high / 1.25 == pytest.approx(1.3)
    allows = ", which allows for the 30 % that processes may differ"
    assert against(1.25).why_not_decided == allows
    assert against(1.4).why_not_decided == ""
    learnt = {"process_noise_ratio": 0.118, "process_noise_source": "selfcheck"}
    assert (is_clear(against(1.1, **learnt)), is_clear(against(1.25, **learnt))) == (False, True)
    known = ", which allows for the 12 % that processes differ on this machine"
    assert against(1.1, **learnt).why_not_decided == known
    loud = against(1.8, **learnt, contended_blocks=8)
    assert not is_clear(loud)
    assert not is_clear(against(3.9, **learnt, contended_blocks=8)), "as an equal backend once was"
    assert is_clear(against(5.0, **learnt, contended_blocks=8))
    assert loud.why_not_decided.endswith(
        "the 300 % that processes may differ while other work disturbs them"
    )


def test_a_case_measured_again_later_allows_for_what_runs_differ_by(tmp_path: Path) -> None:
    fused, sdpa = map(in_five_processes, fused_and_sdpa(tmp_path))
    later = sdpa | {"session": "another"}
    assumed, known = (
        time_ratio(fused | {"between_runs_ratio": ratio}, later) for ratio in (None, 0.05)
    )
    assert assumed.high / assumed.value > 1.25 > known.high / known.value > 1.05
    assert known.noise == "the 5 % that separate measurements differ on this machine"


def test_rows_without_a_session_are_not_paired(tmp_path: Path) -> None:
    rows = rows_of(quickstart(tmp_path, lengths=(128,)))
    found = time_ratio(rows[0] | {"session": None}, rows[1] | {"session": None})
    assert not found.paired


@pytest.mark.parametrize(
    ("low", "high", "mark"),
    [
        (0.96, 1.05, SAME),
        (1.01, 1.04, SAME),  # within the margin, whether it excludes 1 or not
        (1.01, 1.06, CONFIRMED),
        (0.7, 0.99, CONFIRMED),
        (1.5, 9.0, CONFIRMED),
        (0.9, 1.7, SEEN),
        (1.0, 1.2, SEEN),
        (0.7, 1.5, NOISY),
        (nan, nan, NOISY),
    ],
)
def test_the_four_marks_follow_from_the_interval(low: float, high: float, mark: Mark) -> None:
    assert Ratio(value=1.2, low=low, high=high, paired=True).mark == mark


@pytest.mark.long
def test_page_and_compare_give_every_pair_of_the_kept_runs_one_mark() -> None:
    pairs, differ = 0, []
    for run in sorted(KEPT.iterdir()):
        rows = {row["case"]: row for row in rows_of(run)}
        names = {row["backend"] for row in rows.values()}
        for base in sorted(names) if len(names) > 1 else ():
            for one in compare_backends(run, base).of("latency"):
                shown = one.ratio and time_ratio(rows[one.new["case"]], rows[one.base["case"]])
                pairs += shown is not None
                differ += [] if shown == one.ratio else [one.new["case"]]
    assert (pairs, differ) == (PAIRS, [])


def beside_others(row: Row, times: float, processor: float, thread: float) -> Row:
    """Five processes whose blocks other work disturbed, with these times of a call in ms."""
    factors = (1, 1.01, 1.02, 1.04, 1.03)
    wild = (1, 4, 2, 8, 3)
    blocks = [[[times * one]] * 2 for one in wild]
    conditions = [
        [{"processor_ms": processor * one, "thread_ms": thread * one}] * 2 for one in factors
    ]
    changes = {"block_ms": blocks, "conditions": conditions}
    return row | changes | {"contended_blocks": 10, "blocks": 10}


def test_disturbed_times_are_compared_by_processor_time_where_both_of_its_measures_agree(
    tmp_path: Path,
) -> None:
    fused, sdpa = fused_and_sdpa(tmp_path)
    first = beside_others(fused, 9.0, 4.0, 2.0)
    twice = time_ratio(beside_others(sdpa, 3.0, 8.0, 4.0), first)
    assert (twice.by_processor_time, twice.disturbed) == (True, False)
    assert twice.value == pytest.approx(2)
    assert twice.low > 1
    assert twice.high / twice.value >= 1.21  # as far as processor time may mislead
    assert twice.text.endswith(", by processor time")
    # All of it in one thread: half the processor time, and yet it takes as long.
    alone = time_ratio(beside_others(sdpa, 3.0, 2.0, 2.0), first)
    assert not is_clear(alone)
    # Calls that differ by a fifth may be equal on a quiet machine.
    near = time_ratio(beside_others(sdpa, 3.0, 4.8, 2.4), first)
    assert not is_clear(near)
    # Short calls by a quarter.
    ratios = (
        time_ratio(
            beside_others(sdpa, 3.0, 2.5 * ms, 1.25 * ms), beside_others(fused, 9.0, 2 * ms, ms)
        )
        for ms in (0.5, 2.0)
    )
    assert [is_clear(ratio) for ratio in ratios if ratio] == [False, True]


def test_processor_times_of_too_few_blocks_decide_nothing(tmp_path: Path) -> None:
    fused, sdpa = fused_and_sdpa(tmp_path)
    first, second = beside_others(fused, 9.0, 4.0, 2.0), beside_others(sdpa, 3.0, 8.0, 4.0)
    few = [[{}, {}], [{}, {}], [{}, {}], *second["conditions"][3:]]
    ratio = time_ratio(second | {"conditions": few}, first)
    assert (ratio.by_processor_time, ratio.disturbed, ratio.word) == (False, True, NOT_DECIDED)


def test_the_first_of_a_race_is_first_by_what_decides(tmp_path: Path) -> None:
    fused, sdpa = fused_and_sdpa(tmp_path)
    slow = beside_others(fused, 3.0, 8.0, 4.0) | {"latency_ms": 3.0}
    fast = beside_others(sdpa, 9.0, 4.0, 2.0) | {"latency_ms": 9.0}
    found = race([slow, fast])
    assert [row["backend"] for row in found.ranking] == ["sdpa", "fused"]
    assert found.clear
