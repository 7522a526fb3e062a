"""What the audit pack adds to the command line: `attnbench kernels`, and the lines of its
`audit --json-lines`, as types.
"""

from typing import Literal

from typing_extensions import TypedDict

from ..cli.verbs import DEVELOP
from ..rows.documents import Finished, Remark, Running
from ..run.packs import Pack, PackVerb
from .verb import kernels_app


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

PACK = Pack(
    verbs=(PackVerb(name="kernels", command=kernels_app, panel=DEVELOP),),
    documents={"kernels": AuditLine},
)
