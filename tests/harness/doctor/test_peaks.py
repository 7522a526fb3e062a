"""Peak rates as measured."""

import pytest
import torch

from attnbench.harness.doctor import peaks
from attnbench.harness.doctor.peaks import Peak


def test_a_peak_is_work_over_the_best_blocks_median():
    peak = Peak(name="x", work=10.0, block_ms=[[4.0, 5.0, 9.0], [0.1, 6.0, 7.0]])
    assert peak.best_per_s == pytest.approx(10 / 5e-3)


def test_a_copy_counts_bytes_read_and_written_and_a_product_two_flops_per_step():
    assert peaks.copy(torch.device("cpu"), 1 << 20)[0] == 2 << 20
    assert peaks.gemm(torch.device("cpu"), torch.bfloat16, 64)[0] == 2 * 64**3


# ---- CUDA, on a fake GPU -------------------------------------------------------------------------


def test_the_peaks_of_a_gpu_are_those_of_its_kernels(fake_gpu, monkeypatch):
    device = torch.device("cuda", 0)
    sizes = peaks.Sizes(gemm=64, copy_bytes=1 << 20, warm_up_s=0.01, block_s=0.01, blocks=4)
    monkeypatch.setitem(peaks.SIZES, "cuda", sizes)
    fake_gpu.kernel_s |= {"mm": 1e-3, "copy_": 0.5e-3}
    heard, precision = [], torch.get_float32_matmul_precision()
    found = {peak.name: peak for peak in peaks.measure(device, heard.append)}
    assert len(heard) == len(found) == 5
    assert torch.get_float32_matmul_precision() == precision
    for dtype in ("fp32", "tf32", "bf16", "fp16"):
        peak = found[f"gemm_{dtype}_flops_per_s"]
        assert peak.best_per_s == pytest.approx(2 * 64**3 / 1e-3)
        assert len(peak.block_ms) == 4
    assert found["copy_bytes_per_s"].best_per_s == pytest.approx(2 * (1 << 20) / 0.5e-3)
