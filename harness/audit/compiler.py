"""Inside a child: which kernels there are, and what a compiled one takes. Imports triton."""

import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import asdict, fields
from typing import Any

import triton
from triton import knobs

from ...impls._triton.jobs import Job, jobs
from ...impls._triton.safe_code import why_unsafe
from ...impls.problem import Dtype
from .occupancy import Capability, dotted
from .readings import notes_of, ptxas_notes, ptxas_version, reading

TRITON = str(triton.__version__)
PTXAS_SPOKE = "Compiling entry function"  # a line of its log, whatever the program is called


class Unsafe(Exception):
    """A kernel that compiles, but would hang or race; the message says why."""


def plan_kernels(
    capabilities: Iterable[Capability], dtypes: tuple[Dtype, ...], kernels: Iterable[str]
) -> Iterator[tuple[dict[str, Any], Job]]:
    """Every job once, with its fields in run.json.

    `rank`: its place in its list of candidates, 1 for the first choice; lists for few queries come
    last.
    """
    selected = set(kernels)
    for capability in capabilities:
        ranks: Counter[Any] = Counter()
        for job in dict.fromkeys(jobs(capability, dtypes)):
            if job.kernel in selected:
                kind = _kind(job)
                key = tuple(kind.values())
                ranks[key] += 1
                config = asdict(job.config)
                plan = {
                    "case": _id(job.capability, kind | config),
                    "compute_capability": dotted(job.capability),
                    **kind,
                    "config": config,
                    "rank": ranks[key],
                }
                yield plan, job


def _kind(job: Job) -> dict[str, Any]:
    """The fields in which jobs differ, besides the GPU and the configuration."""
    names = (field.name for field in fields(Job) if field.name not in ("capability", "config"))
    return {name: getattr(job, name) for name in names}


def _id(capability: Capability, values: Mapping[str, Any]) -> str:
    """Of all fields, so that a field added to a job or its configuration makes new ids too."""
    parts = [f"kernel-sm{capability[0]}{capability[1]}"]
    for name, value in values.items():
        if isinstance(value, str):
            parts.append(value)
        elif isinstance(value, bool):
            parts += [name] if value else []
        elif value is not None:
            parts.append(f"{name}{value}")
    return "-".join(parts)


def compile_kernel(job: Job) -> dict[str, Any]:
    """The fields of its row: what the tools say of it; `missing` says why a fact is absent.

    Raises whatever Triton raises, and Unsafe.
    """
    kernel, log = _compiled(job)
    if reason := why_unsafe(kernel.asm):
        raise Unsafe(reason)

    def notes() -> list[str]:
        return notes_of(log) if log else ptxas_notes(kernel.asm["ptx"], job.capability)

    found, missing = reading(bytes(kernel.asm["cubin"]), job.capability, notes)
    version, metadata = ptxas_version(job.capability), kernel.metadata
    static_shared_bytes = found.pop("static_shared_bytes", None)
    if static_shared_bytes is not None:
        found["block_shared_bytes"] = metadata.shared + static_shared_bytes
    elif reason := missing.pop("static_shared_bytes", None):
        missing["block_shared_bytes"] = reason
    if not version:
        missing["ptxas"] = "it does not print its version"
    return {
        "triton": TRITON,
        "ptxas": version,
        # with specialized warps, which the configuration does not count
        "block_warp_count": metadata.num_warps,
        "tensor_memory_column_count": getattr(metadata, "tmem_size", None) or 0,
        **found,
        "missing": missing,
    }


def _compiled(job: Job) -> tuple[Any, str]:
    """The kernel, and what ptxas said; "" if it was in Triton's cache, which does not keep that."""
    printed, shown = io.StringIO(), True
    try:
        with knobs.nvidia.scope(), redirect_stdout(printed):
            shown, knobs.nvidia.dump_ptxas_log = knobs.nvidia.dump_ptxas_log, True
            compiled = triton.compile(*job.arguments())
    except BaseException:
        shown = True
        raise
    finally:
        if shown:
            sys.stdout.write(printed.getvalue())
    log = printed.getvalue()
    return compiled, log if PTXAS_SPOKE in log else ""
