"""Peak rates as measured."""

import pytest
import torch

from attnbench.harness.calibration import peaks
from attnbench.harness.calibration.peaks import Peak


def test_a_peak_is_work_over_the_best_blocks_median():
    peak = Peak(name="x", work=10.0, block_ms=[[4.0, 5.0, 9.0], [0.1, 6.0, 7.0]])
    assert peak.best_per_s == pytest.approx(10 / 5e-3)


def test_a_peak_that_cannot_be_measured_has_a_reason():
    def make():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB\nand more")

    peak = peaks.measure_peak("copy_bytes_per_s", make, None, peaks.CPU_SIZES)
    assert (peak.best_per_s, peak.reason) == (None, "CUDA out of memory. Tried to allocate 1 GiB")


def test_a_copy_counts_bytes_read_and_written_and_a_product_two_flops_per_step():
    assert peaks.copy(torch.device("cpu"), 1 << 20)()[0] == 2 << 20
    assert peaks.gemm(torch.device("cpu"), torch.bfloat16, 64)()[0] == 2 * 64**3


def test_tf32_is_restored():
    before = torch.get_float32_matmul_precision()
    with peaks.tf32(allowed=True):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == before
