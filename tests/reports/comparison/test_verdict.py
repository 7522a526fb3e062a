"""reports/comparison/verdict.py: right if the truth is known, undecided if it cannot be decided."""

from dataclasses import replace
from random import Random

import pytest

from attnbench.harness.stats.contrasts import Spread
from attnbench.reports.comparison.case_samples import case_samples, not_started
from attnbench.reports.comparison.verdict import Rules, case_verdicts, geometric_mean, verdict_of
from attnbench.reports.data.noise_floor import ProcessNoise
from tests.made_runs import PLANNED, noise_floor, row, timed

EVERY_BLOCK = 20  # of 5 processes x 4 blocks
QUIET = Spread(sd=0.001, degrees=20)  # runs hardly differ on this machine
KNOWN = {"floor": noise_floor(QUIET)}


def measured(seed, ratio=1.0, planned=PLANNED[0], **changes):
    return case_samples(timed(planned, 10.0 * ratio, Random(seed), **changes))


def scaled(case, ratio):
    return replace(
        case,
        block_ms=tuple(
            tuple(tuple(x * ratio for x in block) for block in process) for process in case.block_ms
        ),
    )


def latency(base, new, **rules):
    (found,) = [
        one
        for one in case_verdicts([(base, new)], Rules(**{**KNOWN, **rules}))
        if one.metric == "latency"
    ]
    return found


def test_one_backend_on_inputs_in_two_orders_is_undecided_in_time_and_bytes():
    base, new = measured(1), measured(2, 2.0, input_order="model", peak_bytes=1)
    found = case_verdicts([(base, new)], Rules(**KNOWN))
    assert {(one.metric, one.verdict) for one in found} == {
        ("latency", "not decided"),
        ("peak_bytes", "not decided"),
    }
    assert all(one.reasons[0] == "inputs_differ" for one in found)
    assert geometric_mean(found) is None
    assert latency(base, replace(new, backend="another")).verdict == "slower"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.04, 1.2, "slower"),
        (0.8, 0.95, "faster"),
        (0.98, 1.02, "same"),
        (0.98, 1.04, "not decided"),
        (1.01, 1.2, "not decided"),
        (0.9, 0.98, "not decided"),
        (0.5, 2.0, "not decided"),
        (float("nan"), float("nan"), "not decided"),
        (1.5, float("inf"), "not decided"),
    ],
)
def test_the_interval_and_the_margin_make_the_verdict(low, high, verdict):
    assert verdict_of(low, high, 0.03, "latency") == verdict


A, OTHER = measured(1), measured(2)
ONE_PROCESS = measured(1, processes=1)
SAME_RUN = {"same_run": True, "backends": True}
NOISY = noise_floor(Spread(sd=0.1, degrees=4))
LEARNT = {"process": ProcessNoise(spread=Spread(sd=0.01, degrees=24), source="selfcheck")}
DISTURBED = {"contended_blocks": EVERY_BLOCK}
SLOW_ALONE = measured(2, 1.25, processes=1)


@pytest.mark.parametrize(
    ("base", "new", "rules", "verdict", "reasons"),
    [
        (A, A, {"given": {"latency": 0.0}}, "same", ()),
        (A, scaled(A, 1.2), {}, "slower", ()),
        (A, scaled(A, 1.2), {"floor": None}, "slower", ()),  # parts of one session
        (A, measured(2, 1.5), {}, "slower", ()),
        (measured(1, blocks=1), measured(2, 1.03), {}, "not decided", ("interval_wide",)),
        # two runs decide nothing unless it is known how much runs differ
        (A, OTHER, {"floor": None}, "not decided", ("between_runs",)),
        (A, measured(2, 5.0), {"floor": None}, "not decided", ("between_runs",)),
        (A, measured(2, 1.3), {"floor": NOISY}, "not decided", ("runs_differ",)),
        (
            measured(1, blocks=1),
            measured(2, 1.03),
            {"floor": NOISY},
            "not decided",
            ("interval_wide",),
        ),
        (A, measured(2, 3.0), {"floor": NOISY}, "slower", ()),
        # single processes decide only what processes cannot explain
        (ONE_PROCESS, ONE_PROCESS, {}, "same", ()),
        (ONE_PROCESS, measured(2, processes=1), {}, "not decided", ("one_process",)),
        (ONE_PROCESS, SLOW_ALONE, {}, "not decided", ("one_process",)),
        (ONE_PROCESS, measured(2, 1.6, processes=1), {}, "slower", ("one_process",)),
        (ONE_PROCESS, measured(2, 1.25), {}, "not decided", ("one_process",)),
        (ONE_PROCESS, SLOW_ALONE, LEARNT, "slower", ("one_process",)),
        (ONE_PROCESS, scaled(ONE_PROCESS, 1.5), SAME_RUN, "slower", ("one_process",)),
        (
            replace(ONE_PROCESS, **DISTURBED),
            replace(SLOW_ALONE, session=ONE_PROCESS.session, **DISTURBED),
            LEARNT | SAME_RUN,
            "not decided",
            ("one_process",),
        ),
        # another environment limits any verdict but "same"
        (A, measured(2, 1.5), {"environment_differs": True}, "slower", ("environment_differs",)),
        (A, A, {"environment_differs": True}, "same", ()),
    ],
)
def test_what_times_decide(base, new, rules, verdict, reasons):
    found = latency(base, new, **rules)
    assert (found.verdict, found.reasons) == (verdict, reasons)


def test_a_session_measured_again_with_other_blocks_is_not_paired():
    assert latency(A, scaled(A, 1.2)).paired
    assert not latency(A, replace(measured(2, blocks=3), session=A.session)).paired


@pytest.mark.parametrize("code", ["contended", "throttled"])
def test_a_disturbed_side_that_is_slow_proves_nothing(code):
    loud = {f"{code}_blocks": EVERY_BLOCK}
    for slow in (measured(2, 1.5, **loud), replace(scaled(A, 1.2), **loud)):
        assert latency(A, slow).reasons == (code,)
        assert latency(A, slow).verdict == latency(slow, A).verdict == "not decided"
    for fast in (measured(2, 1 / 1.5, **loud), replace(scaled(A, 1 / 1.2), **loud)):
        assert latency(A, fast).verdict == "faster"
    assert latency(replace(A, **loud), replace(scaled(A, 1.2), **loud)).verdict == "slower"


def test_other_work_does_not_explain_what_is_slower_by_far_more_than_it_makes():
    """It made equals up to 3.9 times as long (DISTURBED_RATIO); throttling has no such bound."""
    busy, hot = ({f"{code}_blocks": EVERY_BLOCK} for code in ("contended", "throttled"))
    found = latency(A, measured(2, 9.0, **busy))
    assert (found.verdict, found.reasons) == ("slower", ("contended",))
    assert found.low < 9 / 3.9 < 9 * 3.9 < found.high
    assert latency(A, measured(2, 3.9, **busy)).verdict == "not decided"
    assert latency(A, measured(2, 9.0, **busy, **hot)).verdict == "not decided"


def test_the_noise_floor_raises_the_default_margin_only():
    one, other = A, measured(2, 1.1)
    assert latency(one, other).verdict == "slower"
    floor = noise_floor(QUIET, paired_noise_ratio=0.01, run_noise_ratio=0.1)
    assert latency(one, other, floor=floor).margin_ratio == 0.2
    assert latency(one, other, floor=floor).verdict == "same"
    assert latency(one, other, floor=floor, given={"latency": 0.03}).verdict == "slower"
    assert latency(one, one, floor=floor).margin_ratio == 0.03
    assert latency(one, other, floor=noise_floor(run_noise_ratio=5.0)).margin_ratio == 0.25


@pytest.mark.parametrize(
    ("before", "now", "margin", "verdict"),
    [
        ((100, None), (100, None), 0, "same"),
        ((100, None), (101, None), 0, "more"),
        ((100, None), (99, None), 0, "less"),
        ((100, None), (104, None), 0.05, "same"),
        ((0, None), (0, None), 0, "same"),
        ((0, None), (1, None), 0, "more"),
        ((100, None), (None, None), 0, "not decided"),
        # what is kept between calls counts if both sides know it
        ((100, 0), (20, 80), 0, "same"),  # moved to `prepare`, not saved
        ((100, 0), (100, 50), 0, "more"),
        ((100, 50), (100, 0), 0, "less"),
        ((100, None), (20, 80), 0, "less"),  # rows of earlier versions have the peak alone
    ],
)
def test_bytes_are_compared_exactly(before, now, margin, verdict):
    base, new = (
        replace(one, peak_bytes=peak, workspace_bytes=kept)
        for one, (peak, kept) in ((A, before), (OTHER, now))
    )
    found = case_verdicts([(base, new)], Rules(given={"peak_bytes": margin}))
    (of_bytes,) = [one for one in found if one.metric == "peak_bytes"]
    assert of_bytes.verdict == verdict
    assert of_bytes.measured == (now[0] is not None)
    assert ("missing" in of_bytes.reasons) == (now[0] is None)


def test_a_lower_clock_explains_a_slow_side_and_not_a_fast_one():
    def clocked(seed, ratio, clock_mhz):
        return measured(seed, ratio, conditions=[[{"sm_clock_mhz": clock_mhz}] * 4] * 5)

    assert latency(clocked(1, 1.0, 1980), clocked(2, 1.2, 1650)).reasons == ("clocks_differ",)
    assert latency(clocked(1, 1.0, 1980), clocked(2, 1.2, 1965)).verdict == "slower"
    assert latency(clocked(1, 1.0, 1650), clocked(2, 1.2, 1980)).verdict == "slower"


def test_a_lone_claim_that_is_barely_clear_does_not_survive_among_many():
    base, new = measured(1), measured(2)
    barely = next(
        slow
        for ratio in range(1000, 1500)
        if latency(base, slow := scaled(new, ratio / 1000)).verdict == "slower"
    )
    others = [(measured(seed), measured(seed + 1000)) for seed in range(3, 53)]
    first = case_verdicts([(base, barely), *others], Rules(**KNOWN))[0]
    assert (first.metric, first.verdict, first.reasons) == (
        "latency",
        "not decided",
        ("many_claims",),
    )
    far = case_verdicts([(base, scaled(new, 2.0)), *others], Rules(**KNOWN))[0]
    assert far.verdict == "slower"


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
            return not_started(PLANNED[0], "cpu")
        return case_samples(row(PLANNED[0], how)) if how else None

    (found,) = case_verdicts([(ended(base), ended(new))], Rules())
    assert (found.metric, found.verdict, found.reasons) == ("status", verdict, reasons)
    if verdict == "broken":  # another backend that cannot run is no regression
        (found,) = case_verdicts([(ended(base), ended(new))], Rules(**SAME_RUN))
        assert found.verdict == "not decided"
