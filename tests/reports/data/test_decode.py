"""reports/data/peaks.py: which cases are decode steps, their rate, and its share of bandwidth."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.stats.intervals import Interval
from attnbench.reports.data.peaks import NOT_MEASURED, is_decode, traffic
from tests.made_runs import GIB, made, problem, write_run
from tests.reports.rendering import rows_of

MIB = 1 << 20
MEMORY = 20e9  # bytes per second, as calibrated
PEAKS = {"gemm_fp32_flops_per_s": 1e12, "copy_bytes_per_s": MEMORY}
RATES = {"sdpa": 10e9, "naive": 5e9}
LENGTHS = (512, 2048, 8192)
D_K = 128
NOISE = (0.98, 0.99, 1.0, 1.01, 1.02)  # of the processes; their median is exact


def calibration(checks: Any = (), **peaks: Any) -> dict[str, Any]:
    return {"schema": 1, "peaks": {**PEAKS, **peaks}, "checks": list(checks)}


def needed_bytes(length: int, kv_heads: int) -> int:
    """Keys and values of fp32 once, 32 queries and outputs."""
    return 4 * D_K * (2 * kv_heads * length + 2 * 32)


def decode_run(
    parent: Path,
    *,
    calibrated: Any = None,
    cache_bytes: Any = 32 * MIB,
    lengths: tuple[int, ...] = LENGTHS,
    heads: tuple[int, ...] = (32, 8),
    more: Any = (),
    device: str = "cpu",
    **changes: Any,
) -> Path:
    """`heads`: of keys. `more`: further (case, row) pairs. `changes`: of every row."""
    causal = {"causal": True, "causal_align": "bottom_right", "device": device}
    pairs = list(more)
    for length, kv_heads, backend in product(lengths, heads, RATES):
        of = problem(1, 32, kv_seq_len=length, kv_heads=kv_heads, d_model=4096, **causal)
        moved = needed_bytes(length, kv_heads)
        measured = {
            "minimal_bytes": moved,
            "session": f"s{length}",
            "block_ms": [[[moved / RATES[backend] * 1e3 * noise]] for noise in NOISE],
            "processes": len(NOISE),
        }
        pairs.append(made(backend, of, 0.0, **measured | changes))
    environment = {"cpu": "Imaginary CPU 9000", "torch": "2.15.0"}
    if cache_bytes is not None:
        environment["cpu_cache_bytes"] = cache_bytes
    return write_run(
        parent,
        [planned for planned, _ in pairs],
        [one for _, one in pairs],
        name="decode",
        environment=environment,
        memory_bytes=8 * GIB,
        calibration=calibration() if calibrated is None else calibrated,
    )


STEP = {
    "device": "cpu",
    "seq_len": 1,
    "kv_seq_len": 4096,
    "passes": "forward",
    "scope": "core",
    "dtype": "fp32",
    "minimal_bytes": 64 * MIB,
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"seq_len": 16}, True),
        ({"seq_len": 17}, False),
        ({"kv_seq_len": 16}, True),
        ({"kv_seq_len": 15}, False),
        ({"seq_len": 8, "kv_seq_len": 127}, False),
        ({"passes": "forward+backward"}, False),
        ({"scope": "layer"}, False),
        ({"kv_seq_len": None}, False),
    ],
)
def test_a_decode_step_is_a_forward_pass_of_few_queries_over_many_keys(
    changes: dict[str, Any], expected: bool
) -> None:
    assert is_decode(STEP | changes) is expected


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"exactness": "approximate", "error_l2_ratio": 0.1}, "not exact attention"),
        ({"exactness": "other"}, "not exact attention"),
        ({"minimal_bytes": None}, "the row does not say how many bytes must be moved"),
    ],
)
def test_what_need_not_move_known_bytes_has_a_reason_and_no_rate(
    tmp_path: Path, changes: dict[str, Any], note: str
) -> None:
    for row in rows_of(decode_run(tmp_path, cache_bytes=None, **changes)):
        assert row["latency_ms"] is not None
        assert row["decode_bytes_per_s"] is row["decode_bandwidth_ratio"] is None
        assert row["decode_bandwidth_note"].startswith(note)


def test_copies_that_take_turns_do_not_fit_in_a_cache_that_holds_one(tmp_path: Path) -> None:
    for row in rows_of(decode_run(tmp_path, cache_bytes=1 << 27, kv_copies=1 << 20)):
        assert row["decode_fits_in_cache"] is False


def test_of_a_gpu_no_cache_is_named(tmp_path: Path) -> None:
    run = decode_run(tmp_path, cache_bytes=1 << 40, device="cuda")
    for row in rows_of(run):
        assert row["decode_fits_in_cache"] is None
        assert not row["decode_bandwidth_note"]


BUSY = {"name": "copy_bytes_per_s: half-width of repeats", "verdict": "off", "reason": "busy"}
DOUBTED = "calibration doubts the copy that it timed (busy)"
ARITHMETIC = "arithmetic is the limit at 64.0 FLOP per byte, memory only below 50.0"


@pytest.mark.parametrize(
    ("run", "work_flops", "note"),
    [
        ({"environment": {}}, 49 * 64 * MIB, ""),  # the ridge is at 50 FLOP per byte
        ({"environment": {}}, 64 * 64 * MIB, ARITHMETIC),
        ({"calibration": calibration(checks=[BUSY])}, None, DOUBTED),
        ({"calibration": None}, None, NOT_MEASURED),
        *(({"environment": odd}, None, "") for odd in (None, [], {"cpu_cache_bytes": "many"})),
    ],
)
def test_what_limits_or_doubts_a_share_is_said(
    run: dict[str, Any], work_flops: int | None, note: str
) -> None:
    moved = traffic({**STEP, "work_flops": work_flops}, {"calibration": calibration(), **run})
    time_ms = 64 * MIB / (MEMORY / 2) * 1e3
    assert moved.rate(Interval(value=time_ms, low=time_ms, high=time_ms, units=5)).note == note
