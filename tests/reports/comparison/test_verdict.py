"""reports/comparison/verdict.py: right if the truth is known, undecided if it cannot be decided."""

from dataclasses import replace
from math import isnan
from random import Random

import pytest

from attnbench.harness.stats.contrasts import Spread
from attnbench.reports.comparison.case_samples import case_samples, not_started
from attnbench.reports.comparison.verdict import (
    Rules,
    case_verdicts,
    geometric_mean,
    verdict_of,
)
from attnbench.reports.data.noise_floor import ProcessNoise
from attnbench.reports.ratio import Noise
from tests.made_runs import PLANNED, row, timed

EVERY_BLOCK = 20  # of 5 processes x 4 blocks
QUIET = Spread(sd=0.001, degrees=20)  # runs hardly differ on this machine
KNOWN = {"noise": Noise(between_runs=QUIET)}


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


def status(base, new, **rules):
    (found,) = case_verdicts([(base, new)], Rules(**rules))
    assert found.metric == "status"
    return found.verdict, found.reasons


def ended(how):
    return case_samples(row(PLANNED[0], how))


def test_one_backend_on_inputs_in_two_orders_is_undecided_in_time_and_bytes():
    base, new = measured(1), measured(2, 2.0, input_order="model", peak_bytes=1)
    found = case_verdicts([(base, new)], Rules(**KNOWN))
    assert {(one.metric, one.verdict) for one in found} == {
        ("latency", "undecided"),
        ("peak_bytes", "undecided"),
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
        (0.98, 1.04, "undecided"),
        (1.01, 1.2, "undecided"),
        (0.9, 0.98, "undecided"),
        (0.5, 2.0, "undecided"),
        (float("nan"), float("nan"), "undecided"),
        (1.5, float("inf"), "undecided"),
    ],
)
def test_the_interval_and_the_margin_make_the_verdict(low, high, verdict):
    assert verdict_of(low, high, 0.03, "latency") == verdict


def test_a_row_is_the_same_as_itself_without_any_margin():
    one = measured(1)
    found = latency(one, one, given={"latency": 0.0})
    assert (found.verdict, found.reasons, found.ratio, found.low, found.high) == (
        "same",
        (),
        1,
        1,
        1,
    )


def test_samples_times_1_2_are_exactly_1_2_times_slower():
    one = measured(1)
    found = latency(one, scaled(one, 1.2))
    assert (found.verdict, found.paired) == ("slower", True)
    assert (found.ratio, found.low, found.high) == pytest.approx((1.2, 1.2, 1.2))


def test_a_session_measured_again_with_other_blocks_is_not_paired():
    one, other = measured(1), measured(2, blocks=3)
    assert not latency(one, replace(other, session=one.session)).paired


def test_runs_are_compared_over_their_process_medians():
    found = latency(measured(1), measured(2, 1.5))
    assert not found.paired
    assert found.contrast is not None
    assert len(found.contrast.numerator) == len(found.contrast.denominator) == 5
    assert found.verdict == "slower"


def test_single_processes_decide_only_what_processes_cannot_explain():
    for ratio, verdict in ((1.0, "undecided"), (1.25, "undecided"), (1.6, "slower")):
        found = latency(measured(1, processes=1), measured(2, ratio, processes=1))
        assert (found.verdict, found.reasons) == (verdict, ("one_process",))
    assert latency(measured(1, processes=1), measured(2, 1.25)).verdict == "undecided"
    learnt = ProcessNoise(spread=Spread(sd=0.01, degrees=24), source="selfcheck")
    quiet, slow = measured(1, processes=1), measured(2, 1.25, processes=1)
    assert latency(quiet, slow, noise=Noise(process=learnt, between_runs=QUIET)).verdict == "slower"
    loud = measured(2, 1.25, processes=1, contended_blocks=EVERY_BLOCK)
    paired = replace(loud, session=quiet.session, contended_blocks=0)
    assert (
        latency(
            quiet, paired, noise=Noise(process=learnt, between_runs=QUIET), same_run=True
        ).verdict
        == "slower"
    )
    both = [replace(one, contended_blocks=EVERY_BLOCK) for one in (quiet, paired)]
    assert (
        latency(
            *both, noise=Noise(process=learnt, between_runs=QUIET), same_run=True, backends=True
        ).verdict
        == "undecided"
    )


def test_two_runs_decide_nothing_if_it_is_not_known_how_much_runs_differ():
    for ratio in (1.0, 5.0):
        found = latency(measured(1), measured(2, ratio), noise=Noise())
        assert (found.verdict, found.reasons) == ("undecided", ("between_runs",))
        assert isnan(found.p_value)
    noisy = Spread(sd=0.1, degrees=4)
    assert (
        latency(measured(1), measured(2, 1.3), noise=Noise(between_runs=noisy)).verdict
        == "undecided"
    )
    assert (
        latency(measured(1), measured(2, 3.0), noise=Noise(between_runs=noisy)).verdict == "slower"
    )


def test_parts_of_one_session_need_no_noise_between_runs():
    one = measured(1)
    found = latency(one, scaled(one, 1.2), noise=Noise())
    assert (found.verdict, found.reasons) == ("slower", ())


def test_one_process_is_the_same_as_itself():
    one = measured(1, processes=1)
    assert latency(one, one).verdict == "same"


def test_backends_of_one_process_are_paired_with_a_remark():
    one = measured(1, processes=1)
    other = replace(scaled(one, 1.5), backend="other")
    found = latency(one, other, same_run=True, backends=True)
    assert (found.verdict, found.reasons) == ("slower", ("one_process",))


def test_a_wide_interval_is_undecided():
    assert latency(measured(1, blocks=1), measured(2, 1.03)).reasons == ("interval_wide",)


@pytest.mark.parametrize(
    ("field", "code"), [("contended_blocks", "contended"), ("throttled_blocks", "throttled")]
)
def test_a_disturbed_side_that_is_slow_proves_nothing(field, code):
    quiet, loud = measured(1), measured(2, 1.5, **{field: EVERY_BLOCK})
    assert latency(quiet, loud).reasons == (code,)
    assert latency(quiet, loud).verdict == "undecided"
    assert latency(loud, quiet).verdict == "undecided"
    fast_though_loud = measured(2, 1 / 1.5, **{field: EVERY_BLOCK})
    assert latency(quiet, fast_though_loud).verdict == "faster"


@pytest.mark.parametrize(
    ("field", "code"), [("contended_blocks", "contended"), ("throttled_blocks", "throttled")]
)
def test_of_a_pair_only_what_disturbed_the_slow_side_alone_is_a_doubt(field, code):
    quiet = measured(1)
    loud = replace(scaled(quiet, 1.2), **{field: EVERY_BLOCK})
    assert latency(quiet, loud).paired
    assert (latency(quiet, loud).verdict, latency(quiet, loud).reasons) == ("undecided", (code,))
    both = replace(quiet, **{field: EVERY_BLOCK})
    assert latency(both, loud).verdict == "slower"
    fast = replace(scaled(quiet, 1 / 1.2), **{field: EVERY_BLOCK})
    assert latency(quiet, fast).verdict == "faster"


@pytest.mark.parametrize("processes", [1, 5])
def test_of_environments_with_one_process_each_a_disturbance_is_a_doubt(processes):
    """Two processes may be disturbed unlike each other; several show by how much."""
    one = measured(1, processes=processes, contended_blocks=EVERY_BLOCK)
    other = scaled(one, 300)
    environments = {"same_run": True}
    doubted = processes == 1
    for sides in ((one, other), (other, one)):
        found = latency(*sides, **environments)
        assert found.paired
        assert (found.verdict == "undecided") == doubted
        assert ("contended" in found.reasons) == doubted
    calm = [replace(side, contended_blocks=0) for side in (one, other)]
    assert latency(*calm, **environments).verdict == "slower"
    assert latency(one, other, same_run=True, backends=True).verdict == "slower"


def test_a_lower_clock_explains_a_slow_side_and_not_a_fast_one():
    def clocked(seed, ratio, clock_mhz):
        return measured(seed, ratio, conditions=[[{"sm_clock_mhz": clock_mhz}] * 4] * 5)

    assert latency(clocked(1, 1.0, 1980), clocked(2, 1.2, 1650)).reasons == ("clocks_differ",)
    assert latency(clocked(1, 1.0, 1980), clocked(2, 1.2, 1965)).verdict == "slower"
    assert latency(clocked(1, 1.0, 1650), clocked(2, 1.2, 1980)).verdict == "slower"


def test_another_environment_is_a_reason_of_any_verdict():
    found = latency(measured(1), measured(2, 1.5), environment_differs=True)
    assert (found.verdict, found.reasons) == ("slower", ("environment_differs",))
    assert latency(measured(1), measured(1), environment_differs=True).reasons == ()


def test_the_noise_floor_raises_the_default_margin_only():
    one, other = measured(1), measured(2, 1.1)
    assert latency(one, other).verdict == "slower"
    floors = {"paired_floor_ratio": 0.01, "unpaired_floor_ratio": 0.1}
    assert latency(one, other, **floors).margin_ratio == 0.2
    assert latency(one, other, **floors).verdict == "same"
    assert latency(one, other, **floors, given={"latency": 0.03}).verdict == "slower"
    assert latency(one, one, **floors).margin_ratio == 0.03
    assert latency(one, other, unpaired_floor_ratio=5.0).margin_ratio == 0.25


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
        "undecided",
        ("many_claims",),
    )
    far = case_verdicts([(base, scaled(new, 2.0)), *others], Rules(**KNOWN))[0]
    assert far.verdict == "slower"


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        ("ok", "oom", ("broken", ("status_differs",))),
        ("ok", "unavailable", ("broken", ("status_differs",))),
        ("oom", "ok", ("mended", ("status_differs",))),
        ("oom", "oom", ("same", ())),
        ("oom", "crashed", ("undecided", ("status_differs",))),
        ("ok", "interrupted", ("undecided", ("missing",))),
        ("interrupted", "interrupted", ("undecided", ("missing",))),
    ],
)
def test_a_case_that_fails_has_no_number_and_one_verdict(base, new, expected):
    assert status(ended(base), ended(new)) == expected


def test_a_case_of_one_run_only_is_absent():
    assert status(None, ended("ok")) == status(ended("ok"), None) == ("absent", ())
    assert status(ended("ok"), not_started(PLANNED[0], "cpu")) == ("undecided", ("missing",))


def test_another_backend_that_cannot_run_is_no_regression():
    assert status(ended("ok"), ended("unsupported"), same_run=True, backends=True) == (
        "undecided",
        ("status_differs",),
    )


@pytest.mark.parametrize(
    ("before", "now", "margin", "verdict"),
    [
        (100, 100, 0, "same"),
        (100, 101, 0, "more"),
        (100, 99, 0, "less"),
        (100, 104, 0.05, "same"),
        (0, 0, 0, "same"),
        (0, 1, 0, "more"),
    ],
)
def test_peak_bytes_are_compared_exactly(before, now, margin, verdict):
    pairs = [(measured(1, peak_bytes=before), measured(2, peak_bytes=now))]
    (found,) = [
        one
        for one in case_verdicts(pairs, Rules(given={"peak_bytes": margin}))
        if one.metric == "peak_bytes"
    ]
    assert found.verdict == verdict


def test_energy_is_compared_over_processes():
    def with_energy(seed, energy_j):
        windows = [
            {
                "way": "eager",
                "window_s": 6.0,
                "calls": 10,
                "process": p,
                "energy_j": energy_j * (1 + p / 100),
            }
            for p in range(3)
        ]
        return measured(seed, windows=windows)

    pairs = [(with_energy(1, 100.0), with_energy(2, 200.0))]
    (found,) = [
        one for one in case_verdicts(pairs, Rules(**KNOWN)) if one.metric == "energy_per_call"
    ]
    assert (found.verdict, found.paired) == ("more", False)
    assert found.new_value == pytest.approx(20.2, rel=0.01)


def test_a_value_that_only_the_base_run_has_is_missing():
    (found,) = [
        one
        for one in case_verdicts([(measured(1), measured(2, peak_bytes=None))], Rules())
        if one.metric == "peak_bytes"
    ]
    assert (found.verdict, found.reasons, found.measured) == ("undecided", ("missing",), False)


def test_the_geometric_mean_has_an_interval_over_processes():
    pairs = [(measured(seed), measured(seed + 50, 1.1)) for seed in range(8)]
    mean = geometric_mean(case_verdicts(pairs, Rules(**KNOWN)))
    assert mean is not None
    assert mean.units == 8
    unknown = geometric_mean(case_verdicts(pairs, Rules()))
    assert unknown is not None
    assert isnan(unknown.low)
    assert mean.low < 1.1 < mean.high
    assert mean.high / mean.low < 1.1


def test_cases_with_different_numbers_of_processes_have_a_mean_without_interval():
    mean = geometric_mean(
        case_verdicts(
            [(measured(1), measured(2)), (measured(3, processes=4), measured(4))], Rules()
        )
    )
    assert mean is not None
    assert mean.value == pytest.approx(1, abs=0.1)
    assert isnan(mean.low)


def test_500_draws_of_a_known_ratio_are_covered_and_equals_are_rarely_different():
    pairs = [(measured(2 * seed), measured(2 * seed + 1, 1.25)) for seed in range(500)]
    found = [latency(*pair) for pair in pairs]
    assert sum(one.low <= 1.25 <= one.high for one in found) / 500 >= 0.93
    assert not any(one.better for one in found)
    equals = [
        latency(measured(2 * seed), measured(2 * seed + 1), given={"latency": 0.0})
        for seed in range(500)
    ]
    assert sum(one.better or one.worse for one in equals) / 500 <= 0.05


def test_paired_draws_are_covered_too():
    def twin(side, seed):
        random = Random(seed)
        jitter = tuple(
            tuple(tuple(x * 1.1 * (1 + random.gauss(0, 0.01)) for x in block) for block in process)
            for process in side.block_ms
        )
        return replace(side, block_ms=jitter)

    found = [
        latency(one, twin(one, seed + 7000)) for seed in range(500) for one in [measured(seed)]
    ]
    assert all(one.paired for one in found)
    assert sum(one.low <= 1.1 <= one.high for one in found) / 500 >= 0.93


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ((100, 0), (20, 80), "same"),  # moved to `prepare`, not saved
        ((100, 0), (100, 50), "more"),
        ((100, 50), (100, 0), "less"),
        ((100, None), (20, 80), "less"),  # rows of earlier versions have the peak alone
    ],
)
def test_what_is_kept_between_calls_counts_if_both_sides_know_it(before, now, verdict):
    def of(seed, sizes):
        return measured(seed, peak_bytes=sizes[0], workspace_bytes=sizes[1])

    (found,) = (
        one
        for one in case_verdicts([(of(1, before), of(2, now))], Rules())
        if one.metric == "peak_bytes"
    )
    assert found.verdict == verdict
