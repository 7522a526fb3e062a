"""Peak rates by data sheet."""

import pytest

from attnbench.harness.measure.physical_floor import SPECIFIED, specified


def test_specified_peaks_are_dense_and_by_exact_name():
    assert specified("NVIDIA H200")["gemm_bf16_flops_per_s"] == pytest.approx(989.4e12)
    assert specified("NVIDIA A10G") == specified(None) == {}
    for rates in SPECIFIED.values():
        fp32, tf32, bf16 = (rates[f"gemm_{name}_flops_per_s"] for name in ("fp32", "tf32", "bf16"))
        assert fp32 <= tf32 <= bf16
