"""Audited kernels: the result per GPU, and the example kernels that explain an SM."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...harness.audit.kernel_faults import is_serialized, spills
from ..data.row_groups import Row
from ..data.run_meta import Meta
from ..formatting import list_text, plural

KERNELS = ("forward", "grad_q", "grad_kv")
EXAMPLE_WIDTH = 128  # of a head, in most models of today
DTYPES = ("bf16", "fp16", "fp32")  # the usual one first
_OF_SM = ("sm_most_warp_count", "sm_register_count", "sm_shared_bytes")
_ALLOCATED = ("allocated_register_count", "allocated_shared_bytes")
_OF_BLOCK = ("block_warp_count", "thread_register_count", "block_limits", "limited_by")
EXAMPLE_FIELDS = (*_OF_SM, *_ALLOCATED, *_OF_BLOCK)
"""What an example row must have, besides a number of blocks, which may be 0."""
COMPILERS = (("Triton", "triton"), ("ptxas", "ptxas"))
LIMITS = {
    "registers": "registers",
    "shared_memory": "shared memory",
    "tensor_memory": "tensor memory",
    "warps": "warps",
    "blocks": "blocks",
}


def kernels(meta: Meta) -> list[Row]:
    """Every planned kernel, with its run."""
    return [{"run": name, **row} for name, run in meta.items() for row in run.get("kernels", ())]


def by_gpu(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """By run and compute capability, in the order of the plan."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["run"], row["compute_capability"]), []).append(row)
    return found


def busy_text(row: Mapping[str, Any]) -> str:
    """`66 %, turns`: the most that the tensor cores can be busy, and what limits it."""
    ratio = row.get("tensor_busy_most_ratio")
    return "" if ratio is None else f"{100 * ratio:.0f} %, {row['tensor_busy_limited_by']}"


def gpu_text(row: Mapping[str, Any]) -> str:
    """`9.0 (Hopper: H100, H200)`."""
    architecture = row.get("architecture")
    return f"{row['compute_capability']}{f' ({architecture})' if architecture else ''}"


def short_name(row: Mapping[str, Any]) -> str:
    """`9.0 Hopper`."""
    name = (row.get("architecture") or "").partition(":")[0]
    return " ".join(filter(None, (row["compute_capability"], name)))


def finding(rows: Sequence[Row]) -> str:
    """One sentence on the kernels of one GPU, the bad news first."""
    failed = [row for row in rows if row["status"] != "ok"]
    spilling = [row for row in rows if spills(row)]
    unread = [row for row in rows if row["status"] == "ok" and spills(row) is None]
    total = plural(len(rows), "kernel")
    parts = [f"{len(failed)} of {total} did not compile"] if failed else []
    if spilling:
        parts.append(f"{len(spilling)} of {total} spill registers")
    elif len(failed) + len(unread) < len(rows):
        parts.append(
            "none of the others spills registers"
            if failed or unread
            else f"none of {total} spills registers"
        )
    if serialized := sum(map(is_serialized, rows)):
        parts.append(f"{serialized} run their matrix products one at a time")
    if unread:
        parts.append(f"{len(unread)} could not be read")
    held = [
        (row["sm_warp_count"], row["sm_most_warp_count"])
        for row in rows
        if row.get("sm_warp_count") and row.get("sm_most_warp_count")
    ]
    if held:
        warps = sorted({warps for warps, _ in held})
        shown = str(warps[0]) if len(warps) == 1 else f"{warps[0]} to {warps[-1]}"
        parts.append(f"an SM holds {shown} of {held[0][1]} warps")
    if tight := sum(row.get("sm_block_count") == 0 for row in rows):
        parts.append(f"{tight} do not fit and are skipped")
    return f"{gpu_text(rows[0])}: {'; '.join(parts)}"


def examples(rows: Sequence[Row]) -> list[Row]:
    """The first configuration of each kernel with an occupancy, of the usual dtype and head width.

    Causal if there is one.
    """
    counts = ("occupancy_ratio", "sm_block_count", "sm_warp_count")
    known = [
        row
        for row in rows
        if all(row.get(name) is not None for name in counts)
        and all(row.get(name) for name in EXAMPLE_FIELDS)
    ]
    if not known:
        return []
    dtype = min(
        {row["dtype"] for row in known},
        key=lambda name: (DTYPES.index(name) if name in DTYPES else len(DTYPES), name),
    )
    of_dtype = [row for row in known if row["dtype"] == dtype]
    width = min(
        {row["d_k"] for row in of_dtype}, key=lambda width: (abs(width - EXAMPLE_WIDTH), width)
    )
    best: dict[str, Row] = {}
    for row in of_dtype:
        if row["d_k"] == width:
            best[row["kernel"]] = min(
                best.get(row["kernel"], row), row, key=lambda one: (one["rank"], not one["causal"])
            )
    return [best[name] for name in dict.fromkeys((*KERNELS, *best)) if name in best]


def is_bad(row: Mapping[str, Any]) -> bool:
    """It fails the audit, or was not reached."""
    return row["status"] != "ok" or spills(row) is not False or is_serialized(row)


def configuration(config: Mapping[str, Any]) -> str:
    """`128 x 64, 8 warps, 2 stages`: queries by keys of a tile, and the other settings."""
    known = ("block_q", "block_kv", "warps", "stages")
    if not all(type(config.get(name)) is int for name in known):
        return ", ".join(f"{name} {value}" for name, value in config.items())
    tile = f"{config['block_q']} \N{MULTIPLICATION SIGN} {config['block_kv']}"
    others = (
        name if value is True else f"{name} {value}"
        for name, value in config.items()
        if name not in known and value not in (False, None)
    )
    return ", ".join([tile, f"{config['warps']} warps", plural(config["stages"], "stage"), *others])


def limit_text(row: Mapping[str, Any]) -> str:
    return list_text([LIMITS.get(name, name) for name in row.get("limited_by") or []])


def versions(rows: Iterable[Mapping[str, Any]]) -> str:
    """Of the known compilers: `Triton 3.9.0, ptxas 12.9.86 and 13.4.59`."""
    known = {
        name: list(dict.fromkeys(row[field] for row in rows if row.get(field)))
        for name, field in COMPILERS
    }
    texts = [f"{name} {list_text(found)}" for name, found in known.items() if found]
    return ", ".join(texts) or "compilers unknown"
