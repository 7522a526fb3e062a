"""Made-up runs, in folders as docs/format.md defines them, with plausible numbers.

A test names its cases (`case`, `grid`), says how each ended (`row`) or how long it took (`timed`,
`made`), and writes the folder (`write_run`, `run_of`). The other functions are runs that several
tests need.
"""

import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

from attnbench.harness.stats.contrasts import Spread
from attnbench.harness.stats.intervals import latency_interval

Row = dict[str, Any]
Made = tuple[dict[str, Any], Row]  # a case as run.json plans it, and its row

GIB = 1 << 30
CPU_NAME = "Imaginary CPU 9000"
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
PROCESS_SD, BLOCK_SD = 0.02, 0.01


# ---- cases ---------------------------------------------------------------------------------------


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


def case(backend: str, of: Mapping[str, Any]) -> dict[str, Any]:
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
    backends: Sequence[str], lengths: Sequence[int], heads: Sequence[int] = (8,), **changes: Any
) -> list[dict[str, Any]]:
    """The cases of every combination."""
    return [
        case(backend, problem(n, h, **changes))
        for n in lengths
        for h in heads
        for backend in backends
    ]


PLANNED = grid(("naive", "fused", "sdpa"), (256, 512))


# ---- rows ----------------------------------------------------------------------------------------


def peak_bytes(backend: str, of: Mapping[str, Any]) -> int:
    size = {"fp32": 4, "bf16": 2, "fp16": 2}[of["dtype"]]
    n, output = of["seq_len"], of["batch"] * of["seq_len"] * of["d_model"] * size
    scores = {"naive": 2 * n * n, "fused": 2 * of["heads"] * n * n}.get(backend, 0)
    return int(of["batch"] * scores * size + 2 * output)


def row(planned: Mapping[str, Any], status: str = "ok", **changes: Any) -> Row:
    """A row of a planned case; blocks of one group drift together, which pairing cancels."""
    backend, n, heads = planned["backend"], planned["seq_len"], planned["heads"]
    started, ok = status in ("ok", "crashed", "oom"), status == "ok"
    drift, own = Random(ascii(planned["group"])), Random(ascii(planned["case"]))
    scale = SPEED.get(backend, 1.0) * (1 + 0.12 * (heads > 1) * (backend != "sdpa"))
    typical_ms = 0.02 + 2.1e-6 * n * n * planned["batch"] * planned["d_model"] / 512 * scale
    drifts = [drift.lognormvariate(0, 0.05) for _ in range(8)]
    blocks = [[typical_ms * d * own.lognormvariate(0, 0.01) for _ in range(3)] for d in drifts]
    predicted, output_bytes = (
        peak_bytes(backend, planned),
        planned["batch"] * n * planned["d_model"],
    )
    output_bytes *= 4
    measured = {
        "block_ms": [blocks],
        "conditions": [[{"calls": 3, "wall_s": 0.01, "minor_faults": 6} for _ in blocks]],
        "contended_blocks": 0,
        "throttled_blocks": 0,
        "warmup_stationary": True,
        "processes": 1,
        "stop": "ci",
        "half_width_ratio": 0.04,
        "pair_half_width_ratio": 0.03,
        "peak_bytes": predicted + 16,
        "output_bytes": output_bytes,
        "peak_source": "allocator events",
        "error_l2_ratio": 3e-7,
        "error_ratio": 1.02,
        "kernel": f"{backend} kernel",
        "prepare_ms": 0.5,
        "first_call_ms": 2.5,
    }
    names = ("log_tail", "wall_block_ms", "hot_block_ms", "graph_block_ms", "graph_reason")
    nothing = dict.fromkeys((*names, "kernel_requested", "configuration"))
    return {
        "schema": 1,
        "kind": "latency",
        "attempt": 1,
        **{key: value for key, value in planned.items() if key != "group"},
        **nothing,
        "status": status,
        "reason": REASONS.get(status, "" if ok else f"made up: {status}"),
        "phase": {"oom": "memory", "crashed": "latency", "ok": ""}.get(status, "refuse"),
        "session": f"{planned['group']}-1" if started else None,
        **(measured if ok else dict.fromkeys(measured)),
        "input_bytes": 3 * output_bytes,
        "predicted_peak_bytes": predicted,
        "predicted_source": "formula",
        "predicted_reason": "",
        "work_flops": 4 * planned["batch"] * n * n * planned["d_model"],
        "work_exps": planned["batch"] * heads * n * n,
        "minimal_bytes": 4 * output_bytes,
        "started_utc": "2026-11-21T09:30:00Z" if started else None,
        "spent_s": 1.5 if started else None,
        **changes,
    }


def timed(
    planned: Mapping[str, Any],
    truth_ms: float,
    random: Random,
    processes: int = 5,
    blocks: int = 4,
    **changes: Any,
) -> Row:
    """A row that is ok, in a session of its own.

    Every process has a level of its own, every block noise.
    """
    levels = [truth_ms * math.exp(random.gauss(0, PROCESS_SD)) for _ in range(processes)]
    block_ms = [
        [[level * math.exp(random.gauss(0, BLOCK_SD)) for _ in range(3)] for _ in range(blocks)]
        for level in levels
    ]
    session = f"{random.getrandbits(48):012x}"
    usual = {"block_ms": block_ms, "processes": processes, "session": session, "conditions": None}
    return row(planned, "ok", **usual | changes)


def in_one_worker(
    truths_ms: Sequence[float], random: Random, processes: int = 5, blocks: int = 4
) -> list[list[list[list[float]]]]:
    """Samples of cases that take turns in the same blocks: what slows a process or a block down
    (by 20 and by 5 %) slows all of them down; besides, each has the noise of `timed`.
    """
    shared = [
        [level * math.exp(random.gauss(0, 0.05)) for _ in range(blocks)]
        for level in [math.exp(random.gauss(0, 0.2)) for _ in range(processes)]
    ]
    return [
        [
            [[ms * drift * level * math.exp(random.gauss(0, BLOCK_SD))] for drift in process]
            for process in shared
            for level in [math.exp(random.gauss(0, PROCESS_SD))]
        ]
        for ms in truths_ms
    ]


def from_outside(
    inside: Mapping[str, float],
    outside: Mapping[str, tuple[float, float]],
    random: Random,
    processes: int = 5,
    of: Mapping[str, Any] | None = None,
) -> list[Made]:
    """Cases of one problem. `inside`: of the backends that share a worker, in ms. `outside`: of
    those with a worker of their own, with the time that sdpa takes beside each.
    """
    planned = {name: case(name, of or problem(1024)) for name in (*inside, *outside)}
    usual: dict[str, Any] = {"processes": processes, "conditions": None, "session": "shared"}
    samples = in_one_worker([*inside.values()], random, processes)
    rows = [
        row(planned[name], **usual | {"block_ms": one})
        for name, one in zip(inside, samples, strict=True)
    ]
    for name, times in outside.items():
        mine, base = in_one_worker(times, random, processes)
        beside = {"block_ms": mine, "beside": "sdpa", "beside_ms": base, "session": f"of {name}"}
        rows.append(row(planned[name], **usual | beside))
    return [*zip(planned.values(), rows, strict=True)]


def loaded(
    of: Row, process: Spread | None = None, between_runs: Spread | None = None, **changes: Any
) -> Row:
    """A row as pages have it: with its latency, and what is known of its device's noise."""
    blocks = [block for of_process in of.get("block_ms") or () for block in of_process]
    noise: Row = {}
    if process is not None:
        noise |= {"process_noise_ratio": process.ratio, "process_noise_degrees": process.degrees}
        noise |= {"process_noise_source": "selfcheck"}
    if between_runs is not None:
        noise |= {"between_runs_ratio": between_runs.ratio}
        noise |= {"between_runs_degrees": between_runs.degrees}
    latency_ms = latency_interval(of["block_ms"]).value if blocks else None
    return {**of, "latency_ms": latency_ms, "blocks": len(blocks), **noise, **changes}


def made(
    backend: str,
    of: Mapping[str, Any],
    time_ms: float | None,
    *,
    session: str | None = "one",
    drift_sd: float = 0.05,
    noise_sd: float = 0.005,
    **changes: Any,
) -> Made:
    """A planned case and its row, with a block in each of eight processes; without a time, one
    that ran out of memory.

    Blocks of a session share their drift, so ratios within it are paired.
    """
    planned = case(backend, of)
    names = ("kv_seq_len", "kv_heads", "d_k", "mask", "window", "causal_align")
    planned["case"] += "".join(f"-{of[name]}" for name in names) + of.get("lengths", "")
    planned["case"] += "".join(f"-{of[name]}" for name in ("page", "kv_dtype") if name in of)
    if time_ms is None:
        return planned, row(planned, "oom", session=session, **changes)
    drift, own = Random(ascii(session)), Random(ascii(planned["case"]))
    blocks = [
        [[time_ms * drift.lognormvariate(0, drift_sd) * own.lognormvariate(0, noise_sd)]]
        for _ in range(8)
    ]
    given = {"block_ms": blocks, "processes": len(blocks), "session": session, **changes}
    return planned, row(planned, **given)


# ---- folders -------------------------------------------------------------------------------------


def write_run(
    parent: Path,
    cases: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    name: str = "quickstart",
    **meta: Any,
) -> Path:
    """`meta`: of run.json, in place of what stands there otherwise."""
    folder = parent / f"20261121T093000Z-{name}-1a2b3c4d"
    folder.mkdir(parents=True)
    scenario = {
        "name": name,
        "question": (
            "How does the N x N score matrix hit the memory wall, and what do 8 heads cost against"
            " one?"
        ),
        "backends": list(dict.fromkeys(one["backend"] for one in cases)),
        "baseline": "fused",
        "contrast": ["heads"],
        "plan": {"name": "quick", "allocator": "warm_heap"},
        "limits": {"memory_gib": 2},
        "source": f"scenarios/{name}.yaml",
    }
    threads = {"intra": 2, "inter": 1}
    environment = {"cpu": CPU_NAME, "cores": 2, "torch": "2.15.0", "python": "3.11.7"}
    document = {
        "schema": 1,
        "attnbench": "0.1.0",
        "run": folder.name,
        "started_utc": "2026-11-21T09:30:00Z",
        "command": ["attnbench", "run", name],
        "scenario": scenario,
        "device": "cpu",
        "memory_bytes": 2 * GIB,
        "seed": 0,
        "cases": cases,
        "environment": environment | {"threads": threads},
        **meta,
    }
    (folder / "run.json").write_text(json.dumps(document))
    write_rows(folder, rows)
    return folder


def write_rows(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    (folder / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))


def read_rows(folder: Path) -> list[Row]:
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def run_of(
    parent: Path,
    *pairs: Made,
    name: str = "training",
    contrast: Sequence[str] = (),
    baseline: str = "fused",
) -> Path:
    """A run of a scenario that asks for these contrasts."""
    scenario = {
        "name": name,
        "question": f"What does {name} cost?",
        "backends": list(dict.fromkeys(planned["backend"] for planned, _ in pairs)),
        "baseline": baseline,
        "contrast": list(contrast),
        "plan": {"name": "standard", "allocator": "warm_heap"},
        "limits": {},
        "source": f"scenarios/{name}.yaml",
    }
    cases, rows = [planned for planned, _ in pairs], [one for _, one in pairs]
    return write_run(parent, cases, rows, name=name, scenario=scenario)


LENGTHS = (512, 1024, 2048, 4096, 8192)


def over_n(
    parent: Path,
    backends: Sequence[str] = ("fused",),
    lengths: Sequence[int] = LENGTHS,
    *,
    out_from: int | None = 8192,
    of_run: Mapping[str, Any] = MappingProxyType({}),
    **changes: Any,
) -> Path:
    """Backends with 8 heads over N, out of memory from one length on; `changes` are of each row."""
    cases = grid(backends, lengths)
    rows = [
        row(one, "oom" if out_from and one["seq_len"] >= out_from else "ok", **changes)
        for one in cases
    ]
    return write_run(parent, cases, rows, **of_run)


WINDOW = {"way": "eager", "process": 0, "window_s": 2.0, "calls": 1000}


def with_windows(
    parent: Path, by_backend: Mapping[str, Sequence[Mapping[str, Any]]], **changes: Any
) -> Path:
    """Backends on a GPU, at N = 1k and batch 2, with their windows; `changes` are of each row."""
    cases = [case(backend, problem(1024, batch=2, device="cuda")) for backend in by_backend]
    usual: dict[str, Any] = {"utilization_tier": "gpm", "missing": {}, "tables": None}
    rows = [row(one, **usual | {"windows": by_backend[one["backend"]]} | changes) for one in cases]
    return write_run(parent, cases, rows, device="cuda")


def fake_run(
    folder: Path,
    seed: int,
    ratio: float = 1.0,
    planned: Sequence[Mapping[str, Any]] | None = None,
    **changes: Any,
) -> Path:
    """A run of `planned`, or of PLANNED, whose true latencies are `ratio` times 10 ms.

    Every seed is another run of the same code.
    """
    random, cases = Random(seed), planned or PLANNED
    rows = [timed(one, 10.0 * ratio, random, **changes) for one in cases]
    return write_run(folder, cases, rows, name=f"seed{seed}")


def changed(run: Path, name: str, change: Callable[[Row], Row]) -> Path:
    """A copy of a run, every row changed."""
    copy = run.parent / name
    shutil.copytree(run, copy)
    write_rows(copy, [change(one) for one in read_rows(run)])
    return copy


def slower(one: Row) -> Row:
    """All times are 1.2 times as long."""
    times = [[[x * 1.2 for x in block] for block in process] for process in one["block_ms"]]
    return one | {"block_ms": times}


def retold(run: Path, **facts: Any) -> Path:
    """The environment of a run, changed."""
    meta = json.loads((run / "run.json").read_text())
    meta["environment"] |= facts
    meta["device"] = facts.get("device", meta["device"])
    (run / "run.json").write_text(json.dumps(meta))
    return run


def with_study(
    parent: Path,
    study: str,
    findings: list[Any],
    name: str = "",
    *,
    alone: bool = False,
    **changes: Any,
) -> Path:
    """A small run with a row of a study, whatever its findings are.

    `name`: of a part of the study; `alone`: without cases; `changes`: of the row.
    """
    named = {"case": name or f"study-{study}", "study": study}
    cases = [] if alone else grid(("naive", "fused", "sdpa"), (128, 256), (1, 8))
    nothing = dict.fromkeys(("log_tail", "started_utc"))
    ended = {"status": "ok", "reason": "", "findings": findings, "spent_s": 1.0}
    kind = {"schema": 1, "kind": "study", "attempt": 1, "device": "cpu"}
    rows = [*(row(one) for one in cases), {**kind, **named, **nothing, **ended, **changes}]
    return write_run(parent, cases, rows, studies=[named])


# ---- runs ----------------------------------------------------------------------------------------


def status_of(planned: Mapping[str, Any]) -> str:
    """The status of a case of the quickstart."""
    backend, n, heads = planned["backend"], planned["seq_len"], planned["heads"]
    if backend.startswith("sdpa:"):
        return {"sdpa:flash": "unsupported", "sdpa:cudnn": "unavailable"}[backend]
    if backend == "naive" and n == 2048 and heads == 1:
        return "crashed"
    fits = peak_bytes(backend, planned) + 6144 * n < 2 * GIB
    return "ok" if fits else "oom" if backend == "fused" and n == 8192 else "predicted_oom"


def quickstart(
    parent: Path, lengths: Sequence[int] = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
) -> Path:
    """naive, fused and sdpa over N with one head and eight.

    Most statuses occur, and two cases were not reached.
    """
    cases = grid(("naive", "fused", "sdpa", "sdpa:flash", "sdpa:cudnn"), lengths, (1, 8))
    tail = 'Fatal Python error: Segmentation fault\n  File "impls/naive.py", line 31 in <lambda>\n'
    rows = [row(planned, status_of(planned)) for planned in cases[:-2]]
    for one in rows:
        one["log_tail"] = tail if one["status"] == "crashed" else None
    return write_run(parent, cases, rows)


def head_sweep(parent: Path) -> Path:
    """h = 1 to 64 at one N."""
    cases = grid(("naive", "fused", "sdpa"), (2048,), (1, 2, 4, 8, 16, 32, 64))
    rows = [row(one, status_of(one) if one["heads"] > 1 else "ok") for one in cases]
    return write_run(parent, cases, rows, name="head_cost")


def many_problems(parent: Path) -> Path:
    """Several values on every axis that can vary."""
    kinds = (
        {"passes": "forward", "scope": "core"},
        {"passes": "forward+backward", "scope": "layer"},
    )
    cases = []
    for batch, d_model, dtype, kind in product((1, 4), (256, 512), ("fp32", "bf16"), kinds):
        shape = {"batch": batch, "d_model": d_model, "dtype": dtype, **kind}
        cases += grid(("fused", "sdpa"), (128, 1024), **shape)
    return write_run(parent, cases, [row(planned) for planned in cases], name="backends")


def training(parent: Path) -> Path:
    """forward+backward takes 3 times as long in the core and 2.5 times in the layer."""
    times = {("core", "forward"): 1.0, ("layer", "forward"): 2.0}
    times |= {("core", "forward+backward"): 3.0, ("layer", "forward+backward"): 5.0}
    pairs = [
        made(
            backend,
            problem(n, scope=scope, passes=passes, causal=True, causal_align="top_left"),
            ms * n / 512,
            peak_bytes=1000 if passes == "forward" else 2000,
        )
        for n in (512, 1024)
        for (scope, passes), ms in times.items()
        for backend in ("naive", "fused")
    ]
    return run_of(parent, *pairs, contrast=("passes",))


def decode(parent: Path) -> Path:
    """Time grows linearly with the cache, and 8 key and value heads take a quarter of 32."""
    shape = {"d_model": 4096, "causal": True, "causal_align": "bottom_right"}
    pairs = [
        made(
            backend,
            problem(1, 32, kv_seq_len=n_kv, kv_heads=kv_heads, **shape),
            n_kv * kv_heads / 512 / 32,
            input_bytes=n_kv * kv_heads,
            session=f"s{n_kv}",
        )
        for n_kv in (512, 2048, 8192)
        for kv_heads in (32, 8)
        for backend in ("fused", "sdpa")
    ]
    return run_of(parent, *pairs, name="decode", contrast=("kv_heads",), baseline="sdpa")


def pruning(parent: Path) -> Path:
    """A layer of heads 64 wide: of 8 (d_model is 512), of 4, and of one, which takes a quarter."""
    pairs = [
        made(
            "fused",
            problem(1024, heads, d_k=64, d_v=64, scope="layer"),
            time_ms,
            peak_bytes=100 * heads,
            work_flops=1000 * heads,
        )
        for heads, time_ms in ((8, 8.0), (4, 5.0), (1, 2.0))
    ]
    return run_of(parent, *pairs, name="claims_pruning", contrast=("heads",))


INEXACT = {
    "fused": ("exact", None, None),
    "sdpa": ("exact", None, None),
    "linformer": ("approximate", {"rank": 256}, 0.12),
    "linformer:64": ("approximate", {"rank": 64}, 0.34),
    "performer": ("approximate", {"features": 256}, 0.05),
    "rnn": ("other", {"cell": "GRU"}, None),
}
"""Exactness, configuration, and the error at N = 4096."""


def inexact(
    parent: Path,
    backends: Sequence[str] = tuple(INEXACT),
    lengths: Sequence[int] = (256, 512, 1024, 2048, 4096),
    cosines: Mapping[str, float | None] = {},
    **meta: Any,
) -> Path:
    """A run with approximate backends and one that computes something else: linformer is faster
    than sdpa from N = 1536 on, performer from 3072 on, rnn never.

    `cosines`: of some backends' outputs and the exact one; 0.9 for the others.
    """
    per_token_ms = {"linformer": 1.536e-3, "linformer:64": 1e-3, "performer": 3.072e-3, "rnn": 0.05}
    per_pair_ms = {"fused": 2e-6, "sdpa": 1e-6}
    cases, rows = [], []
    for n in lengths:
        for backend in backends:
            kind, configuration, error = INEXACT[backend]
            planned = case(backend, problem(n, scope="layer"))
            own, d = Random(ascii(planned["case"])), planned["d_model"]
            time_ms = per_token_ms.get(backend, 0.0) * n + per_pair_ms.get(backend, 0.0) * n * n
            given: dict[str, Any] = {
                "exactness": kind,
                "block_ms": [[[time_ms * own.lognormvariate(0, 0.01)] for _ in range(8)]],
                "work_flops": 8 * n * d * d + 4 * n * n * d,
                "configuration": configuration,
            }
            if error is not None:
                given |= {"error_l2_ratio": error * (n / 4096) ** 0.5, "error_ratio": 1e5}
                given["output_cosine"] = cosines.get(backend, 0.9)
            if kind == "other":
                given |= {"error_l2_ratio": None, "error_ratio": None}
            cases.append(planned)
            rows.append(row(planned, **given))
    return write_run(parent, cases, rows, name="linear", **meta)


# ---- self-checks beside runs ---------------------------------------------------------------------


def floor_file(folder: Path, **changes: Any) -> None:
    """A line of selfcheck.jsonl."""
    line = {
        "schema": 1,
        "device": "cpu",
        "started_utc": "2026-11-20T10:00:00+00:00",
        "environment": {"cpu": CPU_NAME},
        "paired_noise_ratio": 0.02,
        "run_noise_ratio": 0.06,
        **changes,
    }
    with (folder / "selfcheck.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def starts(folder: Path, run_sd: float, count: int = 4, first: int = 1, **changes: Any) -> None:
    """Self-checks whose runs alternate around 2 ms, with processes that differ by 2 %."""
    for start in range(first, first + count):
        level = 2 * math.exp(run_sd * (-1) ** start)
        processes = [[[level * math.exp(0.02 * k)]] for k in (-1, 0, 1, -1, 1)]
        floor_file(
            folder,
            started_utc=f"2026-11-21T{start:02}:00:00+00:00",
            samples={f"{name}-{twin}": processes for name in ("naive", "fused") for twin in (0, 1)},
            **changes,
        )
