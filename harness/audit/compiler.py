"""Inside a child: which kernels there are, and what a compiled one says of itself. Importing this
imports triton.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any

import triton

from ...impls._triton.jobs import Job, jobs
from ...impls.problem import Dtype
from .architecture import Capability, written
from .sass import mix, opcodes, spilled_bytes
from .cuda_tools import Unreadable, disassembly, ptxas_version, usage

TRITON = str(triton.__version__)
BY_DISASSEMBLY = ("spill_store_bytes", "spill_load_bytes", "instruction_count", "instructions")
BY_USAGE = ("thread_register_count", "thread_stack_bytes", "block_shared_bytes")


def planned(
    capabilities: Iterable[Capability], dtypes: tuple[Dtype, ...], kernels: Iterable[str]
) -> Iterator[tuple[dict[str, Any], Job]]:
    """Every job once, as run.json plans it. `rank`: its place in its list, 1 for the likeliest;
    lists for few queries come last.
    """
    wanted = set(kernels)
    for capability in capabilities:
        ranks: Counter[Any] = Counter()
        for job in dict.fromkeys(jobs(capability, dtypes)):
            if job.kernel in wanted:
                list_of = (*(getattr(job, name) for name in _kind_fields()),)
                ranks[list_of] += 1
                yield plan_of(job, ranks[list_of]), job


def plan_of(job: Job, rank: int) -> dict[str, Any]:
    kind = {name: getattr(job, name) for name in _kind_fields()}
    config = asdict(job.config)
    return {
        "case": _name(job.capability, kind | config),
        "compute_capability": written(job.capability),
        **kind,
        "config": config,
        "rank": rank,
    }


def _kind_fields() -> list[str]:
    """What tells jobs apart beside the GPU and the configuration."""
    return [field.name for field in fields(Job) if field.name not in ("capability", "config")]


def _name(capability: Capability, values: Mapping[str, Any]) -> str:
    """Generic, so that a field that is added to a job or to its configuration tells ids
    apart too.
    """
    parts = [f"kernel-sm{capability[0]}{capability[1]}"]
    for name, value in values.items():
        if isinstance(value, str):
            parts.append(value)
        elif isinstance(value, bool):
            parts += [name] if value else []
        elif value is not None:
            parts.append(f"{name}{value}")
    return "-".join(parts)


def facts(job: Job) -> dict[str, Any]:
    """Compiles it, or finds it in Triton's cache. `missing` says why a fact is absent. Raises
    whatever Triton does.
    """
    compiled = triton.compile(*job.arguments())
    cubin, metadata = compiled.asm["cubin"], compiled.metadata
    found: dict[str, Any] = {
        "triton": TRITON,
        "ptxas": ptxas_version(job.capability),
        # specialized warps included, which the configuration does not count
        "block_warp_count": metadata.num_warps,
        "tensor_memory_column_count": getattr(metadata, "tmem_size", None) or 0,
    }
    missing: dict[str, str] = {} if found["ptxas"] else {"ptxas": "it does not say its version"}
    try:
        of_thread = usage(cubin, job.capability)
        found |= {
            "thread_register_count": of_thread.thread_register_count,
            "thread_stack_bytes": of_thread.thread_stack_bytes,
            "block_shared_bytes": metadata.shared + of_thread.static_shared_bytes,
        }
    except Unreadable as reason:
        missing |= dict.fromkeys(BY_USAGE, str(reason))
    try:
        names = opcodes(disassembly(cubin))
        stores, loads = spilled_bytes(names)
        found |= {
            "spill_store_bytes": stores,
            "spill_load_bytes": loads,
            "instruction_count": len(names),
            "instructions": mix(names),
        }
    except Unreadable as reason:
        missing |= dict.fromkeys(BY_DISASSEMBLY, str(reason))
    return found | {"missing": missing}
