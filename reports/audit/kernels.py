"""Audited kernels: their rows by GPU, the first of each kind, and names for them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..data.row_groups import Row, by
from ..data.run_meta import Meta
from ..formatting import list_text

KERNELS = ("forward", "grad_q", "grad_kv")
DTYPES = ("bf16", "fp16", "fp32")  # the usual one first
COMPILERS = (("Triton", "triton"), ("ptxas", "ptxas"))


def kernels(meta: Meta) -> list[Row]:
    """Every planned kernel, with its run."""
    return [{"run": name, **row} for name, run in meta.items() for row in run.get("kernels", ())]


def by_gpu(rows: Iterable[Row]) -> dict[tuple[str, str], tuple[Row, ...]]:
    """By run and compute capability, in the order of the plan."""
    return by(rows, lambda row: (row["run"], row["compute_capability"]))


def first(rows: Sequence[Row], *, causal: bool) -> list[Row]:
    """Of each kernel and head width the one that is tried first, of the usual dtype.

    If there is such a one, it compiled, fits an SM, and is for causal problems or not.
    """

    def preference(row: Row) -> tuple[Any, ...]:
        unfit = row["status"] != "ok" or not row.get("sm_block_count")
        other = bool(row.get("causal")) is not causal
        return unfit, row.get("rank", 0), other, bool(row.get("masked"))

    by_dtype = by(rows, lambda row: row["dtype"])
    usual = next((by_dtype[name] for name in DTYPES if name in by_dtype), rows)
    every = by(sorted(usual, key=preference), lambda row: (row["kernel"], row["d_k"], row["d_v"]))
    best = [some[0] for some in every.values()]
    place = {name: at for at, name in enumerate(KERNELS)}
    return sorted(best, key=lambda row: (place.get(row["kernel"], len(place)), row["d_k"]))


def gpu_text(row: Mapping[str, Any]) -> str:
    """`9.0 (Hopper: H100, H200)`."""
    architecture = row.get("architecture")
    return f"{row['compute_capability']}{f' ({architecture})' if architecture else ''}"


def short_name(row: Mapping[str, Any]) -> str:
    """`9.0 Hopper`."""
    name = (row.get("architecture") or "").partition(":")[0]
    return " ".join(filter(None, (row["compute_capability"], name)))


def kernel_name(row: Row) -> str:
    """`forward kernel (bf16, heads 128 wide, causal)`."""
    causal = ", causal" if row["causal"] else ""
    return f"{row['kernel']} kernel ({row['dtype']}, heads {row['d_k']} wide{causal})"


def versions(rows: Iterable[Mapping[str, Any]]) -> str:
    """Of the known compilers: `Triton 3.9.0, ptxas 12.9.86 and 13.4.59`."""
    known = {
        name: list(dict.fromkeys(row[field] for row in rows if row.get(field)))
        for name, field in COMPILERS
    }
    texts = [f"{name} {list_text(found)}" for name, found in known.items() if found]
    return ", ".join(texts) or "compilers unknown"
