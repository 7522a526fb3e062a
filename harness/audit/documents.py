"""The lines of `attnbench kernels audit --json-lines`, as types."""

from typing import Literal

from typing_extensions import TypedDict

from ..rows.documents import Finished, Remark, Running


class BeginAudit(TypedDict):
    reason: Literal["begin"]
    run: str
    kernels: int
    done: int
    remarks: list[str]


class EndAudit(TypedDict):
    reason: Literal["end"]
    run: str
    verdicts: list[str]


AuditLine = BeginAudit | Running | Finished | Remark | EndAudit
