"""reports/comparison/several_runs.py: of runs in turns, slow drift does not change the verdict."""

from math import exp
from random import Random

import pytest

from attnbench.reports.comparison.several_runs import merged
from attnbench.reports.comparison.verdict import CaseVerdict, Gate, Rules, apply, case_verdicts
from attnbench.reports.data.row_groups import Row
from attnbench.reports.data.run_meta import NOT_REACHED, not_reached
from tests.budget import first
from tests.made_runs import PLANNED, loaded, row, timed

TURNS = 5


def measured(level_ms: float, random: Random, planned=PLANNED[0], **changes) -> Row:
    """A quick run's row: one process, six blocks."""
    return loaded(timed(planned, level_ms, random, processes=1, blocks=6, **changes))


def both(
    seed: int, ratio: float = 1.0, *, drift: float = 0.0, own: float = 0.02, turns: int = TURNS
) -> tuple[list[Row], list[Row]]:
    """Runs of two sides; each pair has a level that both share, and each run has its own.

    The shared level doubles over the pairs if drift is log 2.
    """
    random = Random(seed)
    levels = [10 * exp(drift * turn / turns) for turn in range(turns)]
    sides = [
        [[measured(level * side * exp(random.gauss(0, own)), random)] for level in levels]
        for side in (1.0, ratio)
    ]
    return merged(sides[0]), merged(sides[1])


def verdicts(base: list[Row], new: list[Row], **rules) -> list[CaseVerdict]:
    return case_verdicts(list(zip(base, new, strict=True)), Rules(turns=TURNS, **rules))


def latency(base: list[Row], new: list[Row], **rules) -> CaseVerdict:
    return next(one for one in verdicts(base, new, **rules) if one.metric == "latency")


def test_the_value_of_a_run_is_the_geometric_mean_of_its_processes_medians() -> None:
    random = Random(0)
    one = measured(1.0, random) | {"block_ms": (((2.0,), (2.0,), (90.0,)), ((8.0,),))}
    assert merged([[one]])[0]["block_ms"] == ((pytest.approx((4.0,)),),)


def test_drift_that_doubles_all_times_hides_no_regression_and_makes_none() -> None:
    for drift in (0.0, 0.7, -0.7):
        assert latency(*both(3, 1.2, drift=drift)).verdict == "slower"
        assert latency(*both(3, 1.0, drift=drift)).verdict in ("same", "not decided")


def test_turns_have_their_own_noise_and_not_that_of_the_pairs_of_a_run() -> None:
    sides = (
        [row | {"pair_noise_ratio": 0.5, "pair_noise_degrees": 6.0} for row in side]
        for side in both(1)
    )
    assert latency(*sides).ratio.high == latency(*both(1)).ratio.high


def test_bytes_are_compared_by_their_median_and_energy_turn_by_turn() -> None:
    random = Random(2)
    windows = [{"way": "eager", "calls": 10, "energy_j": 5.0, "process": 0}] * 2
    dearer = [window | {"energy_j": 7.5} for window in windows]
    base = merged(
        [[measured(1.0, random, peak_bytes=100 + more, windows=windows)] for more in (0, 0, 64)]
    )
    new = merged([[measured(1.0, random, peak_bytes=100, windows=dearer)] for _ in range(3)])
    found = {one.metric: one for one in verdicts(base, new)}
    assert found["peak_bytes"].verdict == "same"
    energy = found["energy_per_call"]
    assert (energy.ratio.paired, energy.verdict) == (True, "more")
    assert energy.ratio.value == pytest.approx(1.5)


@pytest.mark.long
@pytest.mark.parametrize("count", first(1, [100, 400]))
def test_equals_never_differ_with_a_margin(count: int) -> None:
    gate = Gate(margins={"latency": 0.05})
    every = (verdicts(*both(seed, own=0.05, drift=0.3)) for seed in range(count))
    assert not any(apply(gate, some).regressions for some in every)


def test_a_case_that_fails_once_is_broken() -> None:
    random = Random(1)
    good = [[measured(1.0, random)] for _ in range(3)]
    bad = [good[0], [loaded(row(PLANNED[0], "crashed"))], good[2]]
    (found,) = verdicts(merged(good), merged(bad))
    assert (found.metric, found.verdict) == ("status", "broken")
    assert merged(bad)[0]["reason"]


def test_a_case_that_some_run_did_not_plan_or_reach_is_undecided() -> None:
    random = Random(1)
    good = [[measured(1.0, random)] for _ in range(3)]
    missing = {"device": "cpu", **PLANNED[0], **not_reached()}
    for partial in ([*good[:2], []], [*good[:2], [missing]]):
        (side,) = merged(partial)
        assert side["status"] == NOT_REACHED
        (found,) = verdicts(merged(good), [side])
        assert (found.verdict, found.reasons) == ("not decided", ("missing",))


def test_a_turn_is_a_unit_and_a_ratio_is_paired() -> None:
    base, new = both(1)
    assert len(base) == len(new) == 1
    assert [len(process) for process in base[0]["block_ms"]] == [1] * TURNS
    found = latency(base, new)
    assert found.ratio.paired
    assert len(found.ratio.contrast.numerator) == TURNS
    assert "one_process" not in found.reasons
