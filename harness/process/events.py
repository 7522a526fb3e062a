"""What a child may say, checked in one place: where the parent reads it.

A backend shares its process with the code that answers, so an event may be anything. What passes
here has the fields and types that the parent relies on; all else is a bad reply. worker/measure.py
says what the events of a worker mean, telemetry/sampler.py those of the sampler.
"""

import json
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    create_model,
    model_validator,
)

from ..files.errors import shown
from ..files.printable import visible
from ..rows.model import some_of
from ..rows.record import Status
from ..rows.values import Block, Object, OpenPart, Reasons, StatusWord, Window

Events = Callable[[Any], object]
"""Raises ValidationError if the value is not an event of this kind of child."""

MAX_DEPTH = 32  # of objects and lists in each other; our deepest event has 6
INT64 = 1 << 63
SHOWN_BYTES, MOST_SHOWN = 80, 300  # of a line, of what is wrong


class BadReply(ValueError):
    """What was found, in words."""


def parse(line: bytes, events: Events) -> dict[str, Any]:
    """The event of a line. Raises BadReply."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        more = "..." if len(line) > SHOWN_BYTES else ""
        raise BadReply(f"{line[:SHOWN_BYTES]!r}{more} is not an event")
    _refuse_values(event)
    try:
        events(event)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "event"
        found = f"{place}: {first['msg']}"[:MOST_SHOWN]
        raise BadReply(visible(found)) from None
    return event


def _refuse_values(event: dict[str, Any]) -> None:
    """Values that JSON, arithmetic or a data frame cannot hold."""
    level: list[Any] = [event]
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


# ---- parts ---------------------------------------------------------------------------------------


Positive = Annotated[float, Field(gt=0)]
Seconds = Annotated[float, Field(ge=0)]
Size = Annotated[float, Field(ge=0)]
Text = str | None


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Environment(OpenPart):
    device_uuid: str | None
    cores: int
    quota_cores: float | None
    attnbench: str


class Conditions(OpenPart):
    __pydantic_extra__: dict[str, float | bool]
    calls: int
    new_values: int
    wall_s: float


class Quantities(Part):
    block_ms: Annotated[Block, Field(min_length=1)]
    wall_block_ms: Block | None
    hot_block_ms: Block | None
    graph_block_ms: Block | None
    conditions: Conditions


class Pace(Part):
    flops_per_s: dict[str, Positive]
    bytes_per_s: Positive
    step_s: Seconds


class Foreseen(Part):
    refused: bool = False
    peak_bytes: int | None = None
    compiles: bool = False


class Outcome(Part):
    """A status other than ok has a reason."""

    status: StatusWord
    reason: str

    @model_validator(mode="after")
    def _has_reason(self) -> "Outcome":
        if (self.status == Status.OK) == bool(self.reason):
            raise ValueError(f"status {self.status} with reason {shown(self.reason)}")
        return self


def _event(name: str, fields: Mapping[str, Any], base: type[BaseModel] = Part) -> type[BaseModel]:
    """`fields`: the type of each, or type and default."""
    named: dict[str, Any] = {"event": Literal[name], **fields}
    typed: dict[str, Any] = {
        one: kind if isinstance(kind, tuple) else (kind, ...) for one, kind in named.items()
    }
    return create_model(name, __base__=base, **typed)


def _one_of(kinds: Mapping[str, Mapping[str, Any]], *models: type[BaseModel]) -> Events:
    models = (*(_event(name, fields) for name, fields in kinds.items()), *models)
    union: Any = Annotated[reduce(or_, models), Field(discriminator="event")]
    return TypeAdapter[Any](union).validate_python


# ---- by kind of child: the events that it may say, and their fields ------------------------------

STARTED = _event("started", {"pid": int})
WORKER = _one_of(
    {
        "done": {},
        "ready": {"device": Literal["cpu", "cuda"], "why": str, "environment": Environment},
        "configured": {},
        "free": {"available_bytes": Annotated[int, Field(ge=0)]},
        "opened": {"problems": list[str], "remarks": list[str]},
        "foreseen": {
            "pace": Pace,
            "cases": dict[str, Foreseen],
            "walls": dict[str, int],
            "reason": str,
        },
        "predicted": {
            "exactness": (Text, None),
            "input_order": (Text, None),
            "predicted_seq_len": int | None,
            "predicted_source": Text,
            "predicted_reason": str,
        },
        "running": {"case": Text, "phase": str},
        "facts": {
            "case": str,
            "fields": Annotated[Object, AfterValidator(some_of("latency").model_validate)],
        },
        "warm": {
            "case": str,
            "stationary": bool | None,
            "graph_reason": Text,
            "call_ms": Seconds,
            "launch_ms": float | None,
            "shortest_call_ms": float | None,
            "kv_copies": (int | None, None),
        },
        "samples": {
            "case": str,
            "quantities": Quantities,
            "spent_s": Seconds,
            "block_s": Seconds,
            "repeats_exactly": (bool | None, None),
        },
        "watched": {"case": str, "window": Window | None, "tables": Object, "missing": Reasons},
    },
    STARTED,
    _event("tried", {"log_tail": Text, "spent_s": Seconds}, Outcome),
    _event("studied", {"log_tail": Text, "findings": list[Object]}, Outcome),
    _event(
        "ended",  # a case that goes no further, and so never ok
        {
            "case": str,
            "reason": Annotated[str, Field(min_length=1)],
            "phase": str,
            "log_tail": Text,
            "poisoned": bool,
            "by_time": (bool, False),
            "own_doing": (bool, False),
        },
        Outcome,
    ),
)
JUDGE = _one_of(
    {
        "verdict": {
            "case": str,
            "check": Literal["first", "wide", "process", "after"],
            "exactness": Literal["exact", "approximate", "other"],
            "rows_seed": int,
            "values_seed": int,
            "complaint": str,
            "error_l2_ratio": Size | None,
            "output_cosine": float | None,
            "error_ratio": Size | None,
            "error_limit_ratio": Size | None,
            "output_digest": Text,
        }
    },
    STARTED,
)
SAMPLER = _one_of({"ready": {}, "paused": {}, "failed": {"reason": str}}, STARTED)


def any_event(event: Mapping[str, Any]) -> object:
    """For a child without a list of events."""
    return STARTED.model_validate(event) if event["event"] == "started" else event
