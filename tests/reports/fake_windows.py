"""Made-up rows of cases whose utilization was measured on a GPU, and of their kernels."""

from pathlib import Path
from typing import Any

from tests.reports.fake_runs import case, problem, row, write_run

ACTIVE = {"naive": 0.2, "fused": 0.8, "sdpa": 0.9}
ENERGY_J = {"naive": 900.0, "fused": 800.0, "sdpa": 600.0}


def window(backend: str, shift: float = 0.0, **changes: Any) -> dict[str, Any]:
    """2 s with 1000 calls; `hmma_ratio` is missing."""
    return {
        "way": "eager",
        "process": 0,
        "window_s": 2.0,
        "calls": 1000,
        "sm_active_ratio": ACTIVE[backend] + shift,
        "energy_j": ENERGY_J[backend],
        "power_w": 300.0,
        "kernel_busy_ratio": 1.0,
        "hmma_ratio": None,
        "sm_clock_mhz": 1755,
        **changes,
    }


def with_utilization(parent: Path, shifts: tuple[float, ...] = (-0.01, 0.0, 0.01), **changes: Any):
    """A run of three backends on a GPU, with a window for each shift of `sm_active_ratio`.

    `changes` are of each row; those of each window are in `of_windows`.
    """
    of_windows = changes.pop("of_windows", {})
    cases = [case(backend, problem(1024, device="cuda")) for backend in ACTIVE]
    usual = {
        "utilization_tier": "gpm",
        "missing": {"hmma_ratio": "GPM metric 7: this GPU does not offer it"},
        "tables": None,
    }
    rows = []
    for one in cases:
        windows = [window(one["backend"], shift, **of_windows) for shift in shifts]
        rows.append(row(one, **{**usual, "windows": windows, **changes}))
    return write_run(parent, cases, rows, device="cuda")


def kernel(
    name: str, launch_count: int, time_ms: float, grid: list[int] | None = None, **changes: Any
) -> dict[str, Any]:
    """One entry of a `kernel_table`."""
    return {
        "name": name,
        "launch_count": launch_count,
        "time_ms": time_ms,
        "grid": grid,
        "block": grid and [256, 1, 1],
        "thread_register_count": grid and 128,
        "block_shared_bytes": grid and 48 << 10,
        "occupancy_ratio": grid and 0.25,
        **changes,
    }


def kernel_tables(*entries: dict[str, Any], calls: int | None = 5, **others: Any) -> dict[str, Any]:
    """The `tables` of a row."""
    return {"kernel_table": list(entries), "profiled_call_count": calls, **others}
