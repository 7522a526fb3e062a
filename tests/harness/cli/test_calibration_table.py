"""A calibration for the terminal."""

from attnbench.harness.cli.calibration_table import sentences, tables
from attnbench.harness.doctor.calibrate import check_peak
from attnbench.harness.doctor.calibration_checks import Check
from attnbench.harness.doctor.peaks import Peak
from tests.harness.doctor.calibrations import PEAK, made


def test_two_tables_and_a_sentence_for_each_check_that_is_off(tmp_path):
    reason = "other work runs on this GPU"
    off = Check(
        name="idle: kernel_busy_ratio",
        expected="at most 0.05",
        found=0.9,
        outcome="off",
        reason=reason,
    )
    stated = made().specified["gemm_bf16_flops_per_s"]
    calibration = made(checks=[off, *check_peak(PEAK, stated)])
    assert [table.row_count for table in tables(calibration)] == [1, 3]
    shown = list(sentences(calibration, tmp_path))
    assert f"off: idle: kernel_busy_ratio: {reason}" in shown
    assert any("1 of 3 checks are off" in sentence for sentence in shown)


def test_more_than_the_specification_is_called_impossible(tmp_path):
    stated = made().specified["gemm_bf16_flops_per_s"]
    fast = Peak(name="gemm_bf16_flops_per_s", work=3 * stated, block_ms=[[1000.0], [1000.0]])
    calibration = made(peaks=[fast])
    peaks, _ = tables(calibration)
    assert "300 % (impossible)" in list(peaks.columns[-1].cells)
    assert any("the clock is wrong" in one for one in sentences(calibration, tmp_path))
    assert not any("clock is wrong" in one for one in sentences(made(), tmp_path))
