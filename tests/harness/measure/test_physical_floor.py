"""What a device cannot do is refuted with numbers; what it might do is not."""

from typing import Any

import pytest

from attnbench.harness.cases.costs import work_flops
from attnbench.harness.measure import physical_floor
from attnbench.harness.measure.physical_floor import (
    SPECIFIED,
    Device,
    cpu_flops,
    flops_limit,
    least_flops,
    refutation,
    specified,
)
from attnbench.impls.problem import Problem

CPU = Device("cpu", None, None)
H100 = Device("cuda", "NVIDIA H100 80GB HBM3", None)
PROBLEM = Problem(batch=1, seq_len=1024, d_model=512, heads=8)


@pytest.fixture
def two_cores(monkeypatch):
    """With AVX2 and a fused multiply-add: 2 x 6.2 GHz x 32 FLOP = 397 GFLOP/s."""

    def of(flags: str = "avx fma avx2", cores: int = 2) -> None:
        monkeypatch.setattr(physical_floor, "cpu_flags", lambda: frozenset(flags.split()))
        monkeypatch.setattr(physical_floor, "usable_cores", lambda: cores)

    of()
    return of


def row(*block_ms: float, exactness: str = "exact", **more: Any) -> dict[str, Any]:
    return {"block_ms": [[[value] for value in block_ms]], "exactness": exactness, **more}


def test_more_flops_than_the_cores_can_do_are_impossible_and_the_reason_has_the_numbers(two_cores):
    text = refutation(PROBLEM, row(0.0013), CPU, None)
    assert text == (
        "impossible: 1.65 PFLOP/s; this device's limit is 397 GFLOP/s (2 cores x 6.2 GHz x 32 FLOP"
        " per cycle, fma); it did not do the work"
    )


def test_what_takes_just_as_long_as_the_limit_allows_is_possible(two_cores):
    least_ms = work_flops(PROBLEM) / (2 * 6.2e9 * 32) * 1e3
    assert refutation(PROBLEM, row(1.01 * least_ms), CPU, None) == ""
    assert "impossible" in refutation(PROBLEM, row(0.99 * least_ms), CPU, None)


def test_the_fastest_blocks_median_decides_not_one_reading(two_cores):
    slow, lucky = [[100.0, 100.0, 0.001]], [[100.0, 0.001, 0.001]]
    assert refutation(PROBLEM, {"block_ms": [slow], "exactness": "exact"}, CPU, None) == ""
    assert refutation(PROBLEM, {"block_ms": [slow, lucky], "exactness": "exact"}, CPU, None)


def test_an_approximation_may_do_less_work_but_not_nothing(two_cores):
    fast = row(0.001, exactness="approximate")
    assert refutation(PROBLEM, fast, CPU, None) == ""
    assert refutation(PROBLEM, fast, CPU, 0.0005) == ""
    text = refutation(PROBLEM, fast, CPU, 0.002)
    assert text.replace("\u03bc", "u") == (
        "impossible: a call takes 1.00 us; an operation on one number takes more than 2.00 us on"
        " this device; it did not do the work"
    )
    assert "an empty kernel takes more" in refutation(PROBLEM, fast, H100, 0.002)


def test_only_pairs_that_the_mask_keeps_are_work(two_cores):
    causal = Problem(batch=1, seq_len=1024, d_model=512, heads=8, causal=True)
    window = Problem(batch=1, seq_len=1024, d_model=512, heads=8, mask="local", window=8)
    between_ms = 0.8 * least_flops(PROBLEM) / flops_limit("fp32", CPU).per_s * 1e3
    assert "FLOP/s" in refutation(PROBLEM, row(between_ms), CPU, None)
    assert refutation(causal, row(between_ms), CPU, None) == ""
    assert refutation(window, row(between_ms / 20), CPU, None) == ""


@pytest.mark.parametrize("passes", ["forward", "backward", "forward+backward"])
@pytest.mark.parametrize("scope", ["core", "layer"])
def test_without_a_mask_the_least_work_is_all_work(passes, scope):
    problem = Problem(batch=2, seq_len=64, d_model=64, heads=4, passes=passes, scope=scope)
    assert least_flops(problem) == work_flops(problem)


def test_bytes_beyond_every_cache_are_impossible_even_if_hardly_any_flops_are_needed(two_cores):
    narrow = Problem(batch=64, seq_len=1, kv_seq_len=4096, d_model=64, heads=1, dtype="bf16")
    two_cores("avx512f amx_bf16")
    text = refutation(narrow, row(0.02), CPU, None)
    assert "TB/s to move inputs and results once; this device's limit is 2.38 TB/s" in text
    assert "2 cores x 6.2 GHz x 192 B per cycle from L1" in text


def test_every_way_of_timing_is_judged_and_named(two_cores):
    fast = row(100.0, hot_block_ms=[[[0.001]]])
    assert refutation(PROBLEM, fast, H100, None).startswith("impossible with L2 hot: ")
    graph = row(100.0, hot_block_ms=None, graph_block_ms=[[[0.001]]])
    assert refutation(PROBLEM, graph, H100, None).startswith("impossible as a CUDA graph: ")


# ---- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "fp32", "bf16"),
    [
        ("sse2", 8, 8),
        ("sse2 avx", 16, 16),
        ("sse2 avx fma avx2", 32, 32),
        ("sse2 avx fma avx512f", 64, 64),
        ("sse2 avx fma avx512f avx512_bf16", 64, 128),
        ("sse2 avx fma avx512f avx512_bf16 amx_bf16", 64, 2048),
        ("fp asimd", 32, 32),
        ("fp asimd sve bf16", 64, 256),
    ],
)
def test_a_cores_flop_per_cycle_follow_its_flags(two_cores, flags, fp32, bf16):
    two_cores(flags, cores=1)
    assert cpu_flops("fp32").per_s == fp32 * 6.2e9
    assert cpu_flops("bf16").per_s == bf16 * 6.2e9


def test_a_gpus_limit_is_the_lower_of_its_calibration_and_its_data_sheet():
    sheet = flops_limit("bf16", H100)
    assert sheet.per_s == pytest.approx(1.1 * 989.4e12)
    slow = Device("cuda", H100.name, {"gemm_bf16_flops_per_s": 4e14})
    fast = Device("cuda", H100.name, {"gemm_bf16_flops_per_s": 7e14})
    assert flops_limit("bf16", slow).per_s == 8e14
    assert flops_limit("bf16", fast) == sheet
    unknown = Device("cuda", "NVIDIA X1", {"gemm_bf16_flops_per_s": 4e14})
    assert flops_limit("bf16", unknown).per_s == 8e14


def test_specified_peaks_are_dense_and_by_exact_name():
    assert specified("NVIDIA H200")["gemm_bf16_flops_per_s"] == pytest.approx(989.4e12)
    assert specified("NVIDIA A10G") == specified(None) == {}
    for rates in map(specified, SPECIFIED):
        kinds = [f"gemm_{name}_flops_per_s" for name in ("fp32", "tf32", "fp16")]
        rising = [rates[kind] for kind in kinds if kind in rates]
        assert rising == sorted(rising)
        assert rates.get("gemm_bf16_flops_per_s", rising[-1]) == rising[-1]
    assert "gemm_tf32_flops_per_s" not in specified("Tesla T4"), "it has no such matrix units"
