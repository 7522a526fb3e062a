"""reports/comparison/verdict.py: what becomes of a case, by the marks of the one judge."""

from math import isnan
from random import Random

import pytest

from attnbench.harness.stats.contrasts import Spread
from attnbench.reports.comparison.verdict import Rules, case_verdicts
from attnbench.reports.data.run_meta import not_reached
from attnbench.reports.judging.over import geometric_mean
from tests.made_runs import PLANNED, loaded, row, timed

EVERY_BLOCK = 20  # of 5 processes x 4 blocks
QUIET = Spread(sd=0.001, degrees=20)  # runs hardly differ on this machine
NOISY = Spread(sd=0.1, degrees=4)


def measured(seed, ratio=1.0, planned=PLANNED[0], runs=QUIET, **changes):
    of = timed(planned, 10.0 * ratio, Random(seed), **changes)
    return loaded(of, None, runs, run=f"run {seed}")


def scaled(of, ratio, **changes):
    block_ms = [[[x * ratio for x in block] for block in process] for process in of["block_ms"]]
    return loaded(of, block_ms=block_ms) | {"latency_ms": of["latency_ms"] * ratio} | changes


def latency(base, new, **rules):
    found = case_verdicts([(base, new)], Rules(**rules))
    return next(one for one in found if one.metric == "latency")


def test_one_backend_on_inputs_in_two_orders_has_no_mark_in_time_and_bytes():
    base, new = measured(1), measured(2, 2.0, input_order="model", peak_bytes=1)
    found = case_verdicts([(base, new)], Rules())
    assert {(one.metric, one.verdict, one.mark) for one in found} == {
        ("latency", "not decided", None),
        ("peak_bytes", "not decided", None),
    }
    assert all(one.reasons[0] == "inputs_differ" for one in found)
    assert latency(base, new | {"backend": "another"}).verdict == "slower"


A, OTHER = measured(1), measured(2)
ONE_PROCESS = measured(1, processes=1)
SAME_RUN = {"baseline": "fused"}
SLOW_ALONE = measured(2, 1.25, processes=1)


@pytest.mark.parametrize(
    ("base", "new", "verdict", "reasons"),
    [
        (A, A, "same", ()),
        (A, scaled(A, 1.2), "slower", ()),  # parts of one session
        (A, measured(2, 1.5), "slower", ("runs_differ",)),
        (measured(1, blocks=1), measured(2, 1.03), "not decided", ("runs_differ",)),
        # of two runs without a check it is assumed how much they differ
        (A, measured(2, 1.2, runs=None), "not decided", ("between_runs",)),
        (A, measured(2, 5.0, runs=None), "slower", ("between_runs",)),
        (A, measured(2, 1.3, runs=NOISY), "not decided", ("runs_differ",)),
        (A, measured(2, 3.0, runs=NOISY), "slower", ("runs_differ",)),
        # how much single processes tell: tests/reports/judging
        (ONE_PROCESS, ONE_PROCESS, "not decided", ("one_process",)),
        (ONE_PROCESS, SLOW_ALONE, "not decided", ("one_process", "runs_differ")),
    ],
)
def test_what_times_decide(base, new, verdict, reasons):
    found = latency(base, new)
    assert (found.verdict, found.reasons) == (verdict, reasons)


@pytest.mark.parametrize("code", ["contended", "throttled"])
def test_a_disturbed_side_proves_only_what_is_far_off(code):
    loud = {f"{code}_blocks": EVERY_BLOCK}
    found = latency(A, measured(2, 1.5, **loud))
    assert found.verdict == "not decided"
    assert code in found.reasons
    assert latency(A, measured(2, 9.0, **loud)).verdict == "slower"
    # in blocks in turn a backend may throttle the device itself; other work strikes one of them
    paired = [latency(A, scaled(A, ratio, **loud)).verdict for ratio in (1.2, 1 / 1.2)]
    by_code = {"contended": ["not decided"] * 2, "throttled": ["slower", "faster"]}
    assert paired == by_code[code]


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ((100, None), (100, None), "same"),
        ((100, None), (101, None), "more"),
        ((100, None), (99, None), "less"),
        ((0, None), (0, None), "same"),
        ((0, None), (1, None), "more"),
        ((100, None), (None, None), "not decided"),
        # what is kept between calls counts if both sides know it
        ((100, 0), (20, 80), "same"),  # moved to `prepare`, not saved
        ((100, 0), (100, 50), "more"),
        ((100, 50), (100, 0), "less"),
        ((100, None), (20, 80), "less"),  # rows of earlier versions have the peak alone
    ],
)
def test_bytes_are_compared_exactly(before, now, verdict):
    base, new = (
        one | {"peak_bytes": peak, "workspace_bytes": kept}
        for one, (peak, kept) in ((A, before), (OTHER, now))
    )
    (of_bytes,) = [one for one in case_verdicts([(base, new)], Rules()) if "bytes" in one.metric]
    assert of_bytes.verdict == verdict
    assert of_bytes.measured == (now[0] is not None)
    assert ("missing" in of_bytes.reasons) == (now[0] is None)


def test_clocks_that_differ_between_runs_widen_the_interval_by_that():
    def clocked(seed, ratio, clock_mhz):
        return measured(seed, ratio, conditions=[[{"sm_clock_mhz": clock_mhz}] * 4] * 5)

    far = latency(clocked(1, 1.0, 1980), clocked(2, 1.2, 1650))
    assert (far.verdict, far.reasons) == ("not decided", ("runs_differ", "clocks_differ"))
    assert latency(clocked(1, 1.0, 1980), clocked(2, 1.2, 1965)).verdict == "slower"


def test_a_margin_says_what_is_the_same_and_changes_no_interval():
    wide, narrow = (latency(A, scaled(A, 1.04), margin_ratio=ratio) for ratio in (0.05, 0.03))
    assert (wide.verdict, narrow.verdict) == ("same", "slower")
    assert wide.ratio.high == narrow.ratio.high


def test_the_mean_ratio_has_no_interval_where_it_is_only_assumed_how_runs_differ():
    ratios = [latency(A, measured(2, 1.5, runs=runs)).ratio for runs in (QUIET, None)]
    known, assumed = (geometric_mean([one]) for one in ratios)
    assert known.low < known.value < known.high
    assert isnan(assumed.low + assumed.high)


@pytest.mark.parametrize(
    ("base", "new", "verdict", "reasons"),
    [
        ("ok", "oom", "broken", ("status_differs",)),
        ("ok", "unavailable", "broken", ("status_differs",)),
        ("oom", "ok", "mended", ("status_differs",)),
        ("oom", "oom", "same", ()),
        ("oom", "crashed", "not decided", ("status_differs",)),
        ("ok", "interrupted", "not decided", ("missing",)),
        ("interrupted", "interrupted", "not decided", ("missing",)),
        (None, "ok", "absent", ()),
        ("ok", None, "absent", ()),
        ("ok", "not reached", "not decided", ("missing",)),
    ],
)
def test_a_case_that_fails_has_no_number_and_one_verdict(base, new, verdict, reasons):
    def ended(how):
        if how == "not reached":
            return {"device": "cpu", **PLANNED[0], **not_reached()}
        return loaded(row(PLANNED[0], how)) if how else None

    (found,) = case_verdicts([(ended(base), ended(new))], Rules())
    assert (found.metric, found.verdict, found.reasons) == ("status", verdict, reasons)
    if verdict == "broken":  # another backend that cannot run is no regression
        (found,) = case_verdicts([(ended(base), ended(new))], Rules(**SAME_RUN))
        assert found.verdict == "not decided"


def test_another_environment_is_told_of_what_was_not_measured_together():
    found = [latency(A, new, environment_differs=True) for new in (measured(2, 1.5), A)]
    assert ["environment_differs" in one.reasons for one in found] == [True, False]
