"""The row of a kernel: what was compiled, what the cubin says, and how many blocks of it an SM
holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..record import SCHEMA, Status
from .architecture import ARCHITECTURES, SM_REGISTER_COUNT, Architecture
from .occupancy import Block, occupancy

MEASURED = (
    *(
        "triton",
        "ptxas",
        "block_warp_count",
        "thread_register_count",
        "thread_stack_bytes",
        "spill_store_bytes",
        "spill_load_bytes",
    ),
    *("block_shared_bytes", "tensor_memory_column_count", "instruction_count", "instructions"),
)
OF_OCCUPANCY = (
    *(
        "allocated_register_count",
        "allocated_shared_bytes",
        "block_limits",
        "sm_block_count",
        "sm_warp_count",
    ),
    *("occupancy_ratio", "limited_by"),
)
OF_SM = (
    "sm_register_count",
    "sm_shared_bytes",
    "sm_most_warp_count",
    "sm_most_block_count",
    "sm_tensor_memory_column_count",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRecord:
    """docs/format.md says what each field means. `planned`: as run.json has it; `found`: what its
    child answered.
    """

    planned: Mapping[str, Any]
    status: Status
    reason: str = ""
    log_tail: str | None = None
    found: Mapping[str, Any] = field(default_factory=dict)
    started_utc: str | None = None
    spent_s: float | None = None

    def __post_init__(self) -> None:
        if (self.status is Status.OK) == bool(self.reason):
            raise ValueError(
                f"{self.id}: status {self.status} with reason {self.reason!r}; a reason belongs to"
                " every status but ok"
            )

    @property
    def id(self) -> str:
        return str(self.planned["case"])

    def row(self) -> dict[str, Any]:
        """The row as it is stored, JSON-ready."""
        major, minor = map(int, self.planned["compute_capability"].split("."))
        sm = ARCHITECTURES.get((major, minor))
        fitted, why_not = _occupancy(self.found, sm)
        missing = dict(self.found.get("missing") or {})
        if self.status is Status.OK and why_not:
            missing |= dict.fromkeys(OF_OCCUPANCY, why_not)
        if sm is None:
            missing |= dict.fromkeys(
                ("architecture", *OF_SM), _unknown(self.planned["compute_capability"])
            )
        return {
            "schema": SCHEMA,
            "kind": "kernel",
            "attempt": 1,
            "device": "cpu",  # where it was compiled
            **self.planned,
            "architecture": sm and f"{sm.name}: {sm.gpus}",
            "status": self.status,
            "reason": self.reason,
            "log_tail": self.log_tail,
            **{name: self.found.get(name) for name in MEASURED},
            **fitted,
            **_capacity(sm),
            "missing": missing,
            "started_utc": self.started_utc,
            "spent_s": self.spent_s,
        }


def _occupancy(found: Mapping[str, Any], sm: Architecture | None) -> tuple[dict[str, Any], str]:
    """Its fields, and why they are None."""
    nothing = dict.fromkeys(OF_OCCUPANCY)
    if sm is None:
        return nothing, "what its SM holds is not known here"
    if found.get("thread_register_count") is None or found.get("block_shared_bytes") is None:
        return nothing, "what a block takes is not known"
    block = Block(
        warp_count=found["block_warp_count"],
        thread_register_count=found["thread_register_count"],
        shared_bytes=found["block_shared_bytes"],
        tensor_memory_column_count=found["tensor_memory_column_count"],
    )
    fitted = occupancy(block, sm)
    return {name: getattr(fitted, name) for name in OF_OCCUPANCY} | {
        "limited_by": list(fitted.limited_by)
    }, ""


def _capacity(sm: Architecture | None) -> dict[str, int | None]:
    if sm is None:
        return dict.fromkeys(OF_SM)
    held = (
        SM_REGISTER_COUNT,
        sm.shared_bytes,
        sm.most_warp_count,
        sm.most_block_count,
        sm.tensor_memory_column_count,
    )
    return dict(zip(OF_SM, held, strict=True))


def _unknown(capability: str) -> str:
    return f"no limits of compute capability {capability} are known here"
