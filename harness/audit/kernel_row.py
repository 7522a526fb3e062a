"""The row of a kernel: what its cubin takes, and how many blocks of it an SM holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..rows.record import Record, Status
from .occupancy import (
    ARCHITECTURES,
    SM_REGISTER_COUNT,
    Architecture,
    Block,
    Occupancy,
    occupancy,
)
from .tensor_bound import most_busy

OF_SM = (
    *("sm_register_count", "sm_shared_bytes", "sm_most_warp_count", "sm_most_block_count"),
    "sm_tensor_memory_column_count",
)


@dataclass(frozen=True, slots=True)
class PlannedKernel:
    """`plan`: its fields in run.json."""

    plan: Mapping[str, Any]
    kind: ClassVar[Literal["kernel"]] = "kernel"

    @property
    def id(self) -> str:
        return str(self.plan["case"])

    def fields(self) -> dict[str, Any]:
        return dict(self.plan)


def kernel_record(
    plan: Mapping[str, Any], status: Status, reason: str = "", **found: Any
) -> Record:
    """`found`: the fields of the row that the child reported."""
    capability = plan["compute_capability"]
    major, minor = map(int, capability.split("."))
    sm = ARCHITECTURES.get((major, minor))
    fitted, why_not = _occupancy(found, sm)
    missing = dict(found.get("missing") or {})
    if status is Status.OK and why_not:
        missing |= dict.fromkeys(Occupancy._fields, why_not)
    if sm is None:
        unknown = f"no limits of compute capability {capability} are known here"
        missing |= dict.fromkeys(("architecture", *OF_SM), unknown)
    architecture = {"architecture": sm and f"{sm.name}: {sm.gpus}"}
    busy = _busy(found, fitted, plan["config"].get("warps"))
    values = {**found, **fitted, **busy, **_capacity(sm), **architecture, "missing": missing}
    return Record(
        planned=PlannedKernel(plan),
        device="cpu",  # where it was compiled
        attempt=1,
        status=status,
        reason=reason,
        values=values,
    )


def _occupancy(found: Mapping[str, Any], sm: Architecture | None) -> tuple[dict[str, Any], str]:
    """The fields of Occupancy, and why they are None ("" if they are not)."""
    unknown = dict.fromkeys(Occupancy._fields)
    if sm is None:
        return unknown, "what its SM holds is unknown"
    if found.get("thread_register_count") is None or found.get("block_shared_bytes") is None:
        return unknown, "what a block needs is unknown"
    block = Block(
        warp_count=found["block_warp_count"],
        thread_register_count=found["thread_register_count"],
        shared_bytes=found["block_shared_bytes"],
        tensor_memory_column_count=found["tensor_memory_column_count"],
    )
    fitted = occupancy(block, sm)
    return fitted._asdict() | {"limited_by": list(fitted.limited_by)}, ""


def _busy(
    found: Mapping[str, Any], fitted: Mapping[str, Any], asked_warp_count: int | None
) -> dict[str, Any]:
    """How busy the tensor cores can be, if the loop's cycles and the blocks of an SM are known."""
    blocks = fitted["sm_block_count"]
    if found.get("loop_tensor_cycles") is None or not blocks:
        return {}
    ratio, limit = most_busy(found, found["block_warp_count"], blocks, asked_warp_count)
    return {"tensor_busy_most_ratio": ratio, "tensor_busy_limited_by": limit}


def _capacity(sm: Architecture | None) -> dict[str, int | None]:
    if sm is None:
        return dict.fromkeys(OF_SM)
    warps, blocks = sm.most_warp_count, sm.most_block_count
    limits = (SM_REGISTER_COUNT, sm.shared_bytes, warps, blocks, sm.tensor_memory_column_count)
    return dict(zip(OF_SM, limits, strict=True))
