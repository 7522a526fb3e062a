"""Inside a child: which kernels there are, and what a compiled one takes. Imports triton."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any

import triton

from ...impls._triton.jobs import Job, jobs
from ...impls._triton.machine_code import opcodes
from ...impls.problem import Dtype
from .architecture import Capability, dotted
from .cuda_tools import Unreadable, disassembly, ptxas_notes, ptxas_version, usage
from .main_loop import OF_CYCLES, OF_PRODUCTS, loop_fields
from .sass import mix, spilled_bytes

TRITON = str(triton.__version__)
BY_DISASSEMBLY = (
    *("spill_store_bytes", "spill_load_bytes", "instruction_count", "instructions"),
    *("loop_spill_store_bytes", "loop_spill_load_bytes", *OF_PRODUCTS, *OF_CYCLES),
)
BY_USAGE = ("thread_register_count", "thread_stack_bytes", "block_shared_bytes")


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
    """Compile a job, or take it from Triton's cache, and read the cubin.

    `missing` says why a fact is absent. Raises whatever Triton raises.
    """
    compiled = triton.compile(*job.arguments())
    cubin, metadata = compiled.asm["cubin"], compiled.metadata
    found: dict[str, Any] = {
        "triton": TRITON,
        "ptxas": ptxas_version(job.capability),
        # with specialized warps, which the configuration does not count
        "block_warp_count": metadata.num_warps,
        "tensor_memory_column_count": getattr(metadata, "tmem_size", None) or 0,
    }
    missing: dict[str, str] = {} if found["ptxas"] else {"ptxas": "it does not print its version"}
    try:
        resources = usage(cubin, job.capability)
        found |= {
            "thread_register_count": resources.thread_register_count,
            "thread_stack_bytes": resources.thread_stack_bytes,
            "block_shared_bytes": metadata.shared + resources.static_shared_bytes,
        }
    except Unreadable as reason:
        missing |= dict.fromkeys(BY_USAGE, str(reason))
    try:
        code = disassembly(cubin)
        names = opcodes(code)
        stores, loads = spilled_bytes(names)
        found |= {
            "spill_store_bytes": stores,
            "spill_load_bytes": loads,
            "instruction_count": len(names),
            "instructions": mix(names),
            **loop_fields(code),
        }
        if "loop_instructions" not in found:
            missing |= dict.fromkeys(OF_PRODUCTS, "no loop of it multiplies matrices")
        if "loop_tensor_cycles" not in found:
            missing |= dict.fromkeys(OF_CYCLES, "no loop of it has HGMMA, whose cycles are known")
    except Unreadable as reason:
        missing |= dict.fromkeys(BY_DISASSEMBLY, str(reason))
    try:
        found["ptxas_notes"] = ptxas_notes(compiled.asm["ptx"], job.capability)
    except Unreadable as reason:
        missing["ptxas_notes"] = str(reason)
    return found | {"missing": missing}
