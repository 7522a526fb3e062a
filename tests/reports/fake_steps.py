"""Rows of forward kernels on 9.0 with the cycles of a step, as an audit of bf16 found them."""

from typing import Any

from attnbench.reports.data.row_groups import Row
from tests.reports.fake_kernels import plan, row

CYCLES = {64: (512.0, 528.0, 478.0), 128: (1024.0, 528.0, 557.0)}
REGISTERS = {64: 191, 128: 255}
STAGES = {64: 3, 128: 2}
SHARED = {64: 114_688, 128: 163_840}


def cycles(tensor: float, exponential: float, issue: float, **more: Any) -> dict[str, Any]:
    names = ("loop_tensor_cycles", "loop_exponential_cycles", "loop_issue_cycles")
    taken = dict(zip(names, (tensor, exponential, issue), strict=True))
    return {**taken, "loop_overlaps": False, **more}


def planned(width: int, *, rank: int = 1, gpu: str = "9.0", **changes: Any) -> dict[str, Any]:
    """A tile of 128 x 128 with 8 warps; `changes` of its configuration."""
    made = plan(gpu, rank=rank, d_k=width, d_v=width, causal=False)
    made["config"] |= {"block_q": 128, "block_kv": 128, "stages": STAGES[width], **changes}
    return made


def forward(width: int, *, plan: dict[str, Any] | None = None, **changes: Any) -> Row:
    facts = {
        **cycles(*CYCLES[width]),
        "thread_register_count": REGISTERS[width],
        "block_shared_bytes": SHARED[width],
    }
    return row(plan or planned(width), **facts | changes)


def in_gluon(width: int) -> Row:
    """Two consumers of four warps, and a producer that brings the block to twelve."""
    plan = planned(width, rank=2, descriptors=True, gluon=True)
    return forward(width, plan=plan, block_warp_count=12, thread_register_count=168)
