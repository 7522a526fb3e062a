"""Runs whose settings differ along one axis, with known times: measured in the same blocks."""

from pathlib import Path
from random import Random
from typing import Any

from tests.reports.fake_runs import case, problem, row, write_run

PROCESSES = 8


def timed(
    backend: str, of: dict[str, Any], time_ms: float | None, **changes: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A planned case and its row; without a time, one that ran out of memory.

    Blocks of a session share their drift, so ratios within it are paired.
    """
    planned = case(backend, of)
    names = ("kv_seq_len", "kv_heads", "d_k", "mask", "window", "causal_align")
    planned["case"] += "".join(f"-{of[name]}" for name in names)
    session = changes.pop("session", "one")
    if time_ms is None:
        return planned, row(planned, "oom", session=session, **changes)
    drift, own = Random(session), Random(ascii(planned["case"]))
    blocks = [
        [[time_ms * drift.lognormvariate(0, 0.05) * own.lognormvariate(0, 0.005)]]
        for _ in range(PROCESSES)
    ]
    given = {"block_ms": blocks, "processes": PROCESSES, "session": session, **changes}
    return planned, row(planned, **given)


def run_of(
    parent: Path,
    *made: tuple[dict[str, Any], dict[str, Any]],
    name: str = "training",
    contrast: tuple[str, ...] = (),
    baseline: str = "fused",
) -> Path:
    scenario = {
        "name": name,
        "question": f"What does {name} cost?",
        "backends": list(dict.fromkeys(planned["backend"] for planned, _ in made)),
        "baseline": baseline,
        "contrast": list(contrast),
        "plan": {"name": "standard", "allocator": "warm_heap"},
        "limits": {},
        "source": f"scenarios/{name}.yaml",
    }
    return write_run(
        parent,
        [planned for planned, _ in made],
        [one for _, one in made],
        name=name,
        scenario=scenario,
    )


def training(parent: Path, **changes: Any) -> Path:
    """forward+backward takes 3 times as long in the core and 2.5 times in the layer."""
    times = {("core", "forward"): 1.0, ("layer", "forward"): 2.0}
    times |= {("core", "forward+backward"): 3.0, ("layer", "forward+backward"): 5.0}
    return run_of(
        parent,
        *(
            timed(
                backend,
                problem(n, scope=scope, passes=passes, causal=True, causal_align="top_left"),
                ms * n / 512,
                peak_bytes=1000 if passes == "forward" else 2000,
            )
            for n in (512, 1024)
            for (scope, passes), ms in times.items()
            for backend in ("naive", "fused")
        ),
        contrast=("passes",),
        **changes,
    )


def decode(parent: Path) -> Path:
    """Time grows linearly with the cache, and 8 key and value heads take a quarter of 32."""
    shape = {"d_model": 4096, "causal": True, "causal_align": "bottom_right"}
    return run_of(
        parent,
        *(
            timed(
                backend,
                problem(1, 32, kv_seq_len=n_kv, kv_heads=kv_heads, **shape),
                n_kv * kv_heads / 512 / 32,
                input_bytes=n_kv * kv_heads,
                session=f"s{n_kv}",
            )
            for n_kv in (512, 2048, 8192)
            for kv_heads in (32, 8)
            for backend in ("fused", "sdpa")
        ),
        name="decode",
        contrast=("kv_heads",),
        baseline="sdpa",
    )


def pruning(parent: Path) -> Path:
    """A layer of heads 64 wide: of 8 (d_model is 512), of 4, and of one, which takes a quarter."""
    return run_of(
        parent,
        *(
            timed(
                "fused",
                problem(1024, heads, d_k=64, d_v=64, scope="layer"),
                time_ms,
                peak_bytes=100 * heads,
                work_flops=1000 * heads,
            )
            for heads, time_ms in ((8, 8.0), (4, 5.0), (1, 2.0))
        ),
        name="claims_pruning",
        contrast=("heads",),
    )
