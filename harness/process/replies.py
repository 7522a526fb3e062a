"""What a child may reply, checked in one place: where the parent reads it.

A backend shares its process with the code that answers, so a reply may be anything. What passes
here has the fields and types that the parent relies on; all else is a bad reply. A request has the
key "op"; its one reply has the same op, or "ended" if the case goes no further.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)

from ..files.errors import shown
from ..rows.model import some_of
from ..rows.record import Status
from ..rows.values import INT64, Block, Count, Object, OpenPart, Reasons, StatusWord, Window

MAX_DEPTH = 32  # of objects and lists in each other; our deepest reply has 6
SHOWN_BYTES, MOST_SHOWN = 80, 300  # of a line, of what is wrong

Seconds = Annotated[float, Field(ge=0)]
SOME_OF_LATENCY = some_of("latency")


def _row_fields(fields: Object) -> Object:
    SOME_OF_LATENCY.model_validate(fields)
    return fields


RowFields = Annotated[Object, AfterValidator(_row_fields)]


class Exact(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Reply(Exact):
    """To a request that has nothing to tell."""

    op: str


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
    """A case goes no further, in this phase."""

    reason: Annotated[str, Field(min_length=1)]
    phase: str
    fields: RowFields


class Prediction(Reply):
    exactness: str | None = None
    input_order: str | None = None
    predicted_seq_len: int | None
    predicted_source: str | None
    predicted_reason: str


class Conditions(OpenPart):
    __pydantic_extra__: dict[str, int | float | bool]
    calls: int
    wall_s: float


def _of(base: type[BaseModel] = Reply, /, **types: Any) -> Any:
    """`base` with more fields."""
    fields: dict[str, Any] = {one: (types[one], ...) for one in types}
    return create_model(base.__name__, __base__=base, **fields)


FACTS = _of(OpenPart, device_uuid=str | None, cores=int, quota_cores=float | None, attnbench=str)
"""What planning relies on of devices/environment.py's facts."""
SEEN = _of(window=Window | None, tables=Object, missing=Reasons)
"""`missing`: why a probe saw nothing, by name."""
QUANTITIES = _of(
    Exact,
    block_ms=Annotated[Block, Field(min_length=1)],
    wall_block_ms=Block | None,
    hot_block_ms=Block | None,
    graph_block_ms=Block | None,
    conditions=Conditions,
)
Replies = Mapping[str, type[Reply]]
"""What a kind of child may reply, by op."""
WORKER: Replies = {
    # `why`: why it has no GPU
    "ready": _of(device=Literal["cpu", "cuda"], why=str, environment=FACTS),
    "configure": Reply,
    "free": _of(available_bytes=Count),
    # why its study cannot look at a file
    "open_attachment": _of(problems=list[str]),
    "predict": Prediction,
    "trial": _of(StatusReply, spent_s=Seconds),
    "study": _of(StatusReply, findings=list[Object]),
    "draw": _of(compiles=bool),
    "check": _of(fields=RowFields),
    # `digests`: of what the calls returned
    "warm_up": _of(
        stationary=bool | None,
        graph_reason=str | None,
        call_ms=Seconds,
        launch_ms=float | None,
        shortest_call_ms=float | None,
        kv_copies=int | None,
        digests=list[str],
    ),
    "renew": Reply,
    # `spent_s`: of all calls; `block_s`: of everything between request and reply
    "sample": _of(quantities=QUANTITIES, spent_s=Seconds, block_s=Seconds),
    # at the places that are judged: one list for each tensor
    "output": _of(numbers=list[list[float]]),
    "window": SEEN,
    "profile": SEEN,
    "release": Reply,
    "ended": CaseEnd,
}
JUDGE: Replies = {
    "ready": Reply,
    # `complaint`: "" of a right result
    "judged": _of(complaint=str, error_ratio=Seconds | None, error_limit_ratio=Seconds | None),
}


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
        text = f"{place}: {first['msg']}"[:MOST_SHOWN]
        plain = (one if one.isprintable() else ascii(one)[1:-1] for one in text)
        raise BadReply("".join(plain)) from None


def _refuse_values(value: Any, depth: int = 0) -> None:
    """Values that JSON, arithmetic or a data frame cannot hold."""
    if depth > MAX_DEPTH:
        raise BadReply(f"more than {MAX_DEPTH} lists or objects in each other")
    if isinstance(value, int) and not -INT64 <= value < INT64:
        raise BadReply("a number of more than 64 bits")
    if isinstance(value, float) and value - value != 0.0:
        raise BadReply(f"{value} in place of a finite number")
    inner = value.values() if isinstance(value, dict) else value
    for one in inner if isinstance(inner, Iterable) and not isinstance(inner, str) else ():
        _refuse_values(one, depth + 1)
