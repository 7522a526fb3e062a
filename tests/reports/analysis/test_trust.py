"""reports/analysis/trust.py: one sentence per kind of problem, and only where it occurred."""

from typing import Any

import pytest

from attnbench.reports.analysis import trust
from attnbench.reports.data.row_groups import Row
from tests.reports.fake_runs import case, problem

META: dict[str, Any] = {"r": {"scenario": {"plan": {"precision_ratio": 0.05}}}}
QUIET = {
    "run": "r",
    "status": "ok",
    "latency_ms": 1.0,
    "blocks": 8,
    "contended_blocks": 0,
    "throttled_blocks": 0,
    "warmup_stationary": True,
    "stop": "ci",
    "half_width_ratio": 0.04,
    "pair_half_width_ratio": 0.03,
    "launch_bound": None,
}


def timed(seq_len: int = 128, backend: str = "fused", **changes: Any) -> Row:
    return case(backend, problem(seq_len)) | QUIET | changes


def only(*rows: Row) -> str:
    (caution,) = trust.cautions(list(rows), META)
    return caution.replace("\xa0", " ")


def test_a_quiet_run_and_a_run_without_this_information_need_no_caution() -> None:
    assert trust.cautions([timed(), timed(256)], META) == []
    old = dict.fromkeys(
        ("contended_blocks", "throttled_blocks", "warmup_stationary", "pair_half_width_ratio")
    )
    assert (
        trust.cautions([timed(**old), timed(256, latency_ms=None, contended_blocks=8)], META) == []
    )
    assert trust.warnings([timed(**old)]) == []
    assert trust.cautions([], META) == []


def test_cases_with_contended_blocks_are_counted_and_the_worst_are_named() -> None:
    rows = [timed(), timed(256, contended_blocks=4), timed(512, contended_blocks=5)]
    text = only(*rows)
    assert text.startswith(
        "In 2 of 3 timed cases other work competed for the same cores during some of the blocks"
    )
    assert "during more than half of the blocks of fused at N = 512. Such blocks are kept" in text
    assert trust.warnings(rows) == [
        "During more than half of the blocks of 1 of 3 timed cases other work competed for the same"
        " cores: measure it again."
    ]
    assert trust.warnings(rows[:2]) == []


def test_throttled_and_contended_blocks_have_a_sentence_each() -> None:
    rows = [timed(throttled_blocks=8), timed(256, throttled_blocks=8, contended_blocks=1)]
    contended, throttled = trust.cautions(rows, META)
    assert "In 1 of 2 timed cases other work" in contended
    assert "In 2 of 2 timed cases the processor was throttled" in throttled
    (warning,) = trust.warnings(rows)
    assert "throttled" in warning
    assert warning.endswith("measure them again.")


def test_a_warm_up_that_was_not_stationary_is_named_and_one_too_short_to_tell_is_not() -> None:
    text = only(timed(warmup_stationary=None), timed(256, "sdpa", warmup_stationary=False))
    assert text.startswith("In 1 of 2 timed cases call times were not stationary")
    assert text.endswith("sdpa at N = 256.")


def test_missed_precision_is_mentioned_with_the_widest_interval() -> None:
    rows = [
        timed(),
        timed(256, stop="budget", half_width_ratio=0.06),
        timed(512, stop="blocks", pair_half_width_ratio=0.2),
    ]
    text = only(*rows)
    assert text.startswith("In 2 of 3 timed cases measuring ended by time or by number of blocks")
    assert "± 22.1 % (fused at N = 512)" in text


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({"stop": "ci", "half_width_ratio": 0.2}, False),
        ({"stop": "budget"}, False),
        ({"stop": "budget", "half_width_ratio": None, "pair_half_width_ratio": None}, True),
        ({"stop": "blocks", "pair_half_width_ratio": None}, False),
        ({"stop": "blocks", "pair_half_width_ratio": 0.06}, True),
        ({"stop": None}, False),
    ],
)
def test_precision_is_missed_where_sampling_ended_before_it_was_reached(
    changes: dict[str, Any], missed: bool
) -> None:
    assert trust.missed(timed(**changes), 0.05) is missed


def test_without_a_known_target_what_was_cut_short_counts_as_missed() -> None:
    assert trust.missed(timed(stop="budget"), None)
    for plan in (None, {}, [], {"precision_ratio": "0.05"}, {"precision_ratio": True}):
        assert trust.precision_ratio({"scenario": {"plan": plan}}) is None


def test_an_interval_that_is_missing_is_no_number_in_the_sentence() -> None:
    assert "widest" not in only(
        timed(stop="budget", half_width_ratio=None, pair_half_width_ratio=None)
    )


def test_launch_bound_cases_are_named() -> None:
    text = only(timed(launch_bound=True), timed(256, launch_bound=False))
    assert text.startswith(
        "In 1 of 2 timed cases launching costs more than a tenth of the time: fused at N = 128."
    )


def test_of_many_cases_the_first_few_are_named() -> None:
    text = only(*(timed(2**n, warmup_stationary=False) for n in range(7, 17)))
    assert (
        "fused at N = 128, fused at N = 256, fused at N = 512, fused at N = 1k and 6 more" in text
    )


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"unseen_work": True}, "the wall clock saw much more than launching"),
        ({"late_calls": 3}, "the GPU began 3 calls before the host had launched all of it"),
        (
            {"graph_failed": True, "graph_reason": "cannot be captured: it synchronizes"},
            "1 of 2 timed cases could not be captured as a CUDA graph, so their launch costs are"
            " not known: fused at N = 128 (cannot be captured: it synchronizes).",
        ),
    ],
)
def test_gpu_timings_that_do_not_agree_are_a_caution(flags: dict[str, Any], text: str) -> None:
    fine = {"unseen_work": False, "late_calls": 0, "graph_failed": False}
    found = only(timed(**flags), timed(256, **fine))
    assert text in found
    assert "fused at N = 128" in found
    assert "256" not in found


def test_more_flops_than_calibration_measured_is_called_impossible() -> None:
    def rows(ratio: float) -> list[Row]:
        work = {"work_flops": 10**9, "minimal_bytes": 10**6, "dtype": "fp32"}
        return [timed(**work, achieved_flops_per_s=ratio * 1e12)]

    peaks = {"gemm_fp32_flops_per_s": 1e12, "copy_bytes_per_s": 1e11}
    meta = {"r": {**META["r"], "calibration": {"peaks": peaks}}}
    assert trust.cautions(rows(0.99), meta) == []
    assert trust.cautions(rows(2.0), META) == []
    (found,) = trust.cautions(rows(2.0), meta)
    assert "which is impossible: fused" in found
    assert "calibrate again" in found


def test_cases_of_one_process_say_what_their_verdicts_allow_for() -> None:
    def note(source: str, **more: Any) -> str:
        noise = {"process_noise_ratio": 0.118, "process_noise_source": source} | more
        (text,) = trust.process_notes([timed(**noise, block_ms=[[[1.0]]]), timed(256, **noise)])
        return text

    assert "allow for the 12 % that processes differ on this machine" in note("selfcheck")
    assert "the 12 % that processes may differ, which is assumed" in note("assumed")
    several = timed(process_noise_ratio=0.1, block_ms=[[[1.0]], [[1.1]]])
    assert trust.process_notes([several]) == []
    assert note("assumed", contended_blocks=8).endswith(
        "; where other work disturbed one of the two, for 300 %."
    )


def test_kernels_that_were_interpreted_have_no_speed() -> None:
    def meta(**variables: str) -> dict[str, Any]:
        return {"r": META["r"] | {"environment": {"allocator": variables}}}

    assert trust.interpreted([timed()], meta(OMP_NUM_THREADS="1", TRITON_INTERPRET="0")) == []
    (found,) = trust.interpreted([timed()], meta(TRITON_INTERPRET="1"))
    assert found.startswith(
        "TRITON_INTERPRET=1 was set: Triton kernels ran in Python's interpreter"
    )
    assert trust.interpreted([timed(latency_ms=None)], meta(TRITON_INTERPRET="1")) == []
