"""What a child may reply, checked in one place: where the parent reads it.

A backend shares its process with the code that answers, so a reply may be anything. What passes
here has the fields and types that the parent relies on; all else is a bad reply. A request has the
key "op"; its one reply has the same op, or "ended" if the case goes no further.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..files.errors import shown
from ..files.printable import visible
from ..rows.model import some_of
from ..rows.record import Status
from ..rows.values import Block, Count, Object, OpenPart, Reasons, StatusWord, Window

MAX_DEPTH = 32  # of objects and lists in each other; our deepest reply has 6
INT64 = 1 << 63
SHOWN_BYTES, MOST_SHOWN = 80, 300  # of a line, of what is wrong

Seconds = Annotated[float, Field(ge=0)]
SOME_OF_LATENCY = some_of("latency")


def _row_fields(fields: Object) -> Object:
    SOME_OF_LATENCY.model_validate(fields)
    return fields


RowFields = Annotated[Object, AfterValidator(_row_fields)]


class Reply(BaseModel):
    """To a request that has nothing to tell."""

    model_config = ConfigDict(extra="forbid", strict=True)
    op: str


class WorkerFacts(OpenPart):
    """What planning relies on of devices/environment.py's facts."""

    device_uuid: str | None
    cores: int
    quota_cores: float | None
    attnbench: str


class WorkerReady(Reply):
    """A worker's first line, unasked. `why`: why it has no GPU."""

    device: Literal["cpu", "cuda"]
    why: str
    environment: WorkerFacts


class FreeMemory(Reply):
    available_bytes: Count


class OpenedFile(Reply):
    """`problems`: why its study cannot look at a file; `remarks`: for the user."""

    problems: list[str]
    remarks: list[str]


class Prediction(Reply):
    exactness: str | None = None
    input_order: str | None = None
    predicted_seq_len: int | None
    predicted_source: str | None
    predicted_reason: str


class StatusReply(Reply):
    """A status other than ok has a reason."""

    status: StatusWord
    reason: str
    log_tail: str | None

    @model_validator(mode="after")
    def _has_reason(self) -> "StatusReply":
        if (self.status == Status.OK) == bool(self.reason):
            raise ValueError(f"status {self.status} with reason {shown(self.reason)}")
        return self


class CaseEnd(StatusReply):
    """A case goes no further, in this phase. `fields`: of its row, that are known."""

    reason: Annotated[str, Field(min_length=1)]
    phase: str
    fields: RowFields


class WallTrial(StatusReply):
    spent_s: Seconds


class StudyOutcome(StatusReply):
    findings: list[Object]


class DrawnCase(Reply):
    compiles: bool


class CheckedCase(Reply):
    """`fields`: of its row."""

    fields: RowFields


class Warmed(Reply):
    """`digests`: of what the calls returned."""

    stationary: bool | None
    graph_reason: str | None
    call_ms: Seconds
    launch_ms: float | None
    shortest_call_ms: float | None
    kv_copies: int | None
    digests: list[str]


class Conditions(OpenPart):
    __pydantic_extra__: dict[str, int | float | bool]
    calls: int
    wall_s: float


class Quantities(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    block_ms: Annotated[Block, Field(min_length=1)]
    wall_block_ms: Block | None
    hot_block_ms: Block | None
    graph_block_ms: Block | None
    conditions: Conditions


class SampledBlock(Reply):
    """`spent_s`: of all calls; `block_s`: of everything between request and reply."""

    quantities: Quantities
    spent_s: Seconds
    block_s: Seconds


class CalledOutput(Reply):
    """What a timed call returned at the places that are judged: one list for each tensor."""

    numbers: list[list[float]]


class SeenWindow(Reply):
    """`missing`: why a probe saw nothing, by name."""

    window: Window | None
    tables: Object
    missing: Reasons


class Judgement(Reply):
    """`complaint`: "" of a right result."""

    complaint: str
    error_ratio: Seconds | None
    error_limit_ratio: Seconds | None


Replies = Mapping[str, type[Reply]]
"""What a kind of child may reply, by op."""
WORKER: Replies = {
    "ready": WorkerReady,
    "configure": Reply,
    "free": FreeMemory,
    "open_attachment": OpenedFile,
    "predict": Prediction,
    "trial": WallTrial,
    "study": StudyOutcome,
    "draw": DrawnCase,
    "check": CheckedCase,
    "warm_up": Warmed,
    "renew": Reply,
    "sample": SampledBlock,
    "output": CalledOutput,
    "window": SeenWindow,
    "profile": SeenWindow,
    "release": Reply,
    "ended": CaseEnd,
}
JUDGE: Replies = {"ready": Reply, "judged": Judgement}


class BadReply(ValueError):
    """What was found, in words."""


def parse(line: bytes, replies: Replies) -> Reply:
    """The reply of a line. Raises BadReply."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("op"), str):
        more = "..." if len(line) > SHOWN_BYTES else ""
        raise BadReply(f"{line[:SHOWN_BYTES]!r}{more} is not a reply")
    _refuse_values(found)
    op = found["op"]
    if op not in replies:
        raise BadReply(f"op {shown(op)} is not one of {', '.join(replies)}")
    try:
        return replies[op].model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, (op, *first["loc"])))
        raise BadReply(visible(f"{place}: {first['msg']}"[:MOST_SHOWN])) from None


def _refuse_values(reply: dict[str, Any]) -> None:
    """Values that JSON, arithmetic or a data frame cannot hold."""
    level: list[Any] = [reply]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            below += value.values() if isinstance(value, dict) else value
        for value in below:
            if isinstance(value, int) and not -INT64 <= value < INT64:
                raise BadReply("a number of more than 64 bits")
            if isinstance(value, float) and value - value != 0.0:
                raise BadReply(f"{value} in place of a finite number")
        level = [value for value in below if isinstance(value, dict | list)]
        if not level:
            return
    raise BadReply(f"more than {MAX_DEPTH} lists or objects in each other")
