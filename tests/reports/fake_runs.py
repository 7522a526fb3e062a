"""Writes run folders as docs/format.md defines them, with plausible made-up numbers."""

import json
from pathlib import Path
from random import Random
from typing import Any

GIB = 1 << 30
REASONS = {
    "oom": "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4294967296 bytes",
    "predicted_oom": (
        "inputs and peak need more than the budget of 2 GiB; raise limits.memory_gib to try"
    ),
    "unsupported": "flash has no float32 kernel; use bf16 or fp16",
    "unavailable": "needs a CUDA device, and there is none",
    "crashed": "the worker died of signal 11 (SIGSEGV)",
}
SPEED = {"naive": 1.35, "fused": 1.0, "sdpa": 0.42}  # relative time per score


def problem(seq_len: int, heads: int = 8, **changes: Any) -> dict[str, Any]:
    d_model = changes.get("d_model", 512)
    return {
        "device": "cpu",
        "batch": 1,
        "seq_len": seq_len,
        "kv_seq_len": seq_len,
        "d_model": d_model,
        "heads": heads,
        "kv_heads": heads,
        "d_k": d_model // heads,
        "d_v": d_model // heads,
        "dtype": "fp32",
        "causal": False,
        "causal_align": "",
        "mask": "none",
        "window": 0,
        "passes": "forward",
        "scope": "core",
        **changes,
    }


def case(backend: str, of: dict[str, Any]) -> dict[str, Any]:
    size = f"b{of['batch']}-n{of['seq_len']}-d{of['d_model']}"
    kind = f"{of['dtype']}-{of['passes']}-{of['scope']}"
    name, group = f"{backend}-{size}-h{of['heads']}-{kind}", f"{size}-{kind}"
    return {
        "case": name + ("-causal" if of["causal"] else ""),
        "group": group,
        "backend": backend,
        **of,
    }


def grid(
    backends: tuple[str, ...],
    lengths: tuple[int, ...],
    heads: tuple[int, ...] = (8,),
    **changes: Any,
) -> list[dict[str, Any]]:
    """The cases of every combination."""
    return [
        case(backend, problem(n, h, **changes))
        for n in lengths
        for h in heads
        for backend in backends
    ]


def peak_bytes(backend: str, of: dict[str, Any]) -> int:
    size = {"fp32": 4, "bf16": 2, "fp16": 2}[of["dtype"]]
    n, output = of["seq_len"], of["batch"] * of["seq_len"] * of["d_model"] * size
    scores = {"naive": 2 * n * n, "fused": 2 * of["heads"] * n * n}.get(backend, 0)
    return int(of["batch"] * scores * size + 2 * output)


def row(planned: dict[str, Any], status: str = "ok", **changes: Any) -> dict[str, Any]:
    """A row of a planned case; blocks of one group drift together, which pairing cancels."""
    backend, n, heads = planned["backend"], planned["seq_len"], planned["heads"]
    started = status in ("ok", "crashed", "oom")
    drift, own = Random(ascii(planned["group"])), Random(ascii(planned["case"]))
    scale = SPEED.get(backend, 1.0) * (1 + 0.12 * (heads > 1) * (backend != "sdpa"))
    typical_ms = 0.02 + 2.1e-6 * n * n * planned["batch"] * planned["d_model"] / 512 * scale
    drifts = [drift.lognormvariate(0, 0.05) for _ in range(8)]
    blocks = [[typical_ms * d * own.lognormvariate(0, 0.01) for _ in range(3)] for d in drifts]
    predicted = peak_bytes(backend, planned)
    return {
        "schema": 1,
        "kind": "latency",
        "attempt": 1,
        **{key: value for key, value in planned.items() if key != "group"},
        "status": status,
        "reason": REASONS.get(status, "" if status == "ok" else f"made up: {status}"),
        "log_tail": None,
        "phase": {"oom": "memory", "crashed": "latency", "ok": ""}.get(status, "refuse"),
        "session": f"{planned['group']}-1" if started else None,
        "block_ms": [blocks] if status == "ok" else None,
        "wall_block_ms": None,
        "hot_block_ms": None,
        "graph_block_ms": None,
        "graph_reason": None,
        "conditions": (
            [[{"calls": 3, "wall_s": 0.01, "minor_faults": 6} for _ in blocks]]
            if status == "ok"
            else None
        ),
        "contended_blocks": 0 if status == "ok" else None,
        "throttled_blocks": 0 if status == "ok" else None,
        "warmup_stationary": True if status == "ok" else None,
        "processes": 1 if status == "ok" else None,
        "stop": "ci" if status == "ok" else None,
        "half_width_ratio": 0.04 if status == "ok" else None,
        "pair_half_width_ratio": 0.03 if status == "ok" else None,
        "input_bytes": 3 * planned["batch"] * n * planned["d_model"] * 4,
        "peak_bytes": predicted + 16 if status == "ok" else None,
        "output_bytes": planned["batch"] * n * planned["d_model"] * 4 if status == "ok" else None,
        "peak_source": "allocator events" if status == "ok" else None,
        "predicted_peak_bytes": predicted,
        "predicted_source": "formula",
        "predicted_reason": "",
        "meta_peak_bytes": None if backend.startswith("sdpa") else predicted,
        "meta_reason": (
            f"{backend} is not made of plain operations only" if backend.startswith("sdpa") else ""
        ),
        "work_flops": 4 * planned["batch"] * n * n * planned["d_model"],
        "work_exps": planned["batch"] * heads * n * n,
        "minimal_bytes": 4 * planned["batch"] * n * planned["d_model"] * 4,
        "error_l2_ratio": 3e-7 if status == "ok" else None,
        "error_ratio": 1.02 if status == "ok" else None,
        "kernel_requested": None,
        "kernel": f"{backend} kernel" if status == "ok" else None,
        "prepare_ms": 0.5 if status == "ok" else None,
        "first_call_ms": 2.5 if status == "ok" else None,
        "configuration": None,
        "started_utc": "2026-11-21T09:30:00Z" if started else None,
        "spent_s": 1.5 if started else None,
        **changes,
    }


def write_run(
    parent: Path,
    cases: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    name: str = "quickstart",
    **meta: Any,
) -> Path:
    folder = parent / f"20261121T093000Z-{name}-1a2b3c4d"
    folder.mkdir(parents=True)
    scenario = {
        "name": name,
        "question": (
            "How does the N x N score matrix hit the memory wall, and what do 8 heads cost against"
            " one?"
        ),
    }
    scenario |= {
        "backends": list(dict.fromkeys(one["backend"] for one in cases)),
        "baseline": "fused",
        "contrast": ["heads"],
    }
    scenario |= {
        "plan": {"name": "quick", "allocator": "warm_heap"},
        "limits": {"memory_gib": 2},
        "source": f"scenarios/{name}.yaml",
    }
    environment = {
        "cpu": "Imaginary CPU 9000",
        "cores": 2,
        "torch": "2.15.0",
        "python": "3.11.7",
        "threads": {"intra": 2, "inter": 1},
    }
    document = {
        "schema": 1,
        "attnbench": "0.1.0",
        "run": folder.name,
        "started_utc": "2026-11-21T09:30:00Z",
    }
    document |= {
        "command": ["attnbench", "run", name],
        "scenario": scenario,
        "device": "cpu",
        "memory_bytes": 2 * GIB,
        "seed": 0,
    }
    document |= {"cases": cases, "environment": environment, **meta}
    (folder / "run.json").write_text(json.dumps(document))
    (folder / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    return folder


def status_of(planned: dict[str, Any]) -> str:
    """The status of a case of the quickstart."""
    backend, n, heads = planned["backend"], planned["seq_len"], planned["heads"]
    if backend.startswith("sdpa:"):
        return {"sdpa:flash": "unsupported", "sdpa:cudnn": "unavailable"}[backend]
    if backend == "naive" and n == 2048 and heads == 1:
        return "crashed"
    fits = peak_bytes(backend, planned) + 6144 * n < 2 * GIB
    return "ok" if fits else "oom" if backend == "fused" and n == 8192 else "predicted_oom"


def quickstart(
    parent: Path, lengths: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
) -> Path:
    """naive, fused and sdpa over N with one head and eight.

    Most statuses occur, and two cases were not reached.
    """
    names = ("naive", "fused", "sdpa", "sdpa:flash", "sdpa:cudnn")
    cases = [
        case(backend, problem(n, heads)) for n in lengths for heads in (1, 8) for backend in names
    ]
    rows = [row(planned, status_of(planned)) for planned in cases[:-2]]
    tail = 'Fatal Python error: Segmentation fault\n  File "impls/naive.py", line 31 in <lambda>\n'
    return write_run(
        parent,
        cases,
        [one | {"log_tail": tail} if one["status"] == "crashed" else one for one in rows],
    )


def head_sweep(parent: Path) -> Path:
    """h = 1 to 64 at one N."""
    cases = [
        case(backend, problem(2048, heads))
        for heads in (1, 2, 4, 8, 16, 32, 64)
        for backend in ("naive", "fused", "sdpa")
    ]
    return write_run(
        parent,
        cases,
        [row(planned, status_of(planned) if planned["heads"] > 1 else "ok") for planned in cases],
        name="head_cost",
    )


def many_problems(parent: Path) -> Path:
    """Several values on every axis that can vary."""
    sizes = [
        {"batch": b, "d_model": d, "dtype": t, "passes": p, "scope": s}
        for b in (1, 4)
        for d in (256, 512)
        for t in ("fp32", "bf16")
        for p, s in (("forward", "core"), ("forward+backward", "layer"))
    ]
    cases = [
        case(backend, problem(n, 8, **of))
        for of in sizes
        for n in (128, 1024)
        for backend in ("fused", "sdpa")
    ]
    return write_run(parent, cases, [row(planned) for planned in cases], name="backends")
