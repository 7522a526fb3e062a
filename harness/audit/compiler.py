"""Inside a child: which kernels there are, and what a compiled one takes. Imports triton."""

import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, fields
from typing import Any

import triton
from triton import knobs

from ...impls._triton.jobs import Job, jobs
from ...impls._triton.nvidia_tools import Unreadable
from ...impls.problem import Dtype
from .architecture import Capability, dotted
from .cuda_tools import notes_of, ptxas_notes, ptxas_version
from .joined_code import disassemblies
from .readings import Reading, kept, reading

TRITON = str(triton.__version__)
PTXAS_SPOKE = "Compiling entry function"  # a line of its log, whatever the program is called


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


@dataclass(slots=True, kw_only=True)
class Built:
    """A job as Triton compiled it, or took it from its cache. `log`: what ptxas said; "" if cached.

    `reading`: what is kept of an earlier audit. `code`: the disassembly, or why there is none.
    """

    job: Job
    kernel: Any
    log: str
    reading: Reading | None
    code: str | Unreadable | None = None

    @property
    def cubin(self) -> bytes:
        return bytes(self.kernel.asm["cubin"])

    def notes(self) -> list[str]:
        if self.log:
            return notes_of(self.log)
        return ptxas_notes(self.kernel.asm["ptx"], self.job.capability)


def build(job: Job) -> Built:
    """Raises whatever Triton raises."""
    kernel, log = _compiled(job)
    found = kept(bytes(kernel.asm["cubin"]), job.capability)
    return Built(job=job, kernel=kernel, log=log, reading=found)


def disassemble(built: Sequence[Built]) -> None:
    """Fill `code`, for all of them at once: that takes little longer than for one."""
    for one, code in zip(built, disassemblies([one.cubin for one in built]), strict=True):
        one.code = code


def compile_kernel(job: Job) -> dict[str, Any]:
    """The fields of its row. Raises whatever Triton raises."""
    return row_fields(build(job))


def row_fields(built: Built) -> dict[str, Any]:
    """What the tools say of a kernel; it is disassembled if it has to be and was not.

    `missing` says why a fact is absent.
    """
    if built.reading is None and built.code is None:
        disassemble([built])
    job, metadata = built.job, built.kernel.metadata
    if built.reading is not None:
        found, missing = built.reading
    else:
        assert built.code is not None
        found, missing = reading(built.cubin, job.capability, code=built.code, notes=built.notes)
    version = ptxas_version(job.capability)
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
