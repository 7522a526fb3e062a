"""A made-up run of decode steps: sdpa moves 10 GB/s, naive 5 GB/s, whatever the length."""

from pathlib import Path
from typing import Any

from tests.reports.fake_contrasts import timed
from tests.reports.fake_runs import GIB, problem, write_run

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


def _blocks(time_ms: float) -> list[list[list[float]]]:
    return [[[time_ms * noise]] for noise in NOISE]


def decode_run(
    parent: Path,
    *,
    calibrated: Any = None,
    cache_bytes: Any = 32 * MIB,
    lengths: tuple[int, ...] = LENGTHS,
    more: Any = (),
    speed: float = 1.0,
    problem_changes: dict[str, Any] | None = None,
    name: str = "decode",
    **changes: Any,
) -> Path:
    """`more`: further (case, row) pairs. `changes`: of every row."""
    shape = {"d_model": 4096, "causal": True, "causal_align": "bottom_right"}
    shape |= problem_changes or {}
    made = [
        timed(
            backend,
            problem(1, 32, kv_seq_len=length, kv_heads=kv_heads, **shape),
            0.0,
            **{
                "minimal_bytes": needed_bytes(length, kv_heads),
                "session": f"s{length}",
                "block_ms": _blocks(needed_bytes(length, kv_heads) / (speed * rate) * 1e3),
                "processes": len(NOISE),
                **changes,
            },
        )
        for length in lengths
        for kv_heads in (32, 8)
        for backend, rate in RATES.items()
    ]
    made += more
    environment = {"cpu": "Imaginary CPU 9000", "torch": "2.15.0"}
    if cache_bytes is not None:
        environment["cpu_cache_bytes"] = cache_bytes
    return write_run(
        parent,
        [planned for planned, _ in made],
        [one for _, one in made],
        name=name,
        environment=environment,
        memory_bytes=8 * GIB,
        calibration=calibration() if calibrated is None else calibrated,
    )
