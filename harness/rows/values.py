"""Types of the values in rows, and in what a worker says."""

from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from .status import Status

INT64 = 1 << 63  # what a data frame holds
T = TypeVar("T")


class Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", use_attribute_docstrings=True)


class OpenPart(BaseModel):
    """May have more fields than these."""

    model_config = ConfigDict(strict=True, extra="allow")


def _of_64_bits(value: Any) -> Any:
    """A whole number that stands for a float."""
    if type(value) is int and not -INT64 <= value < INT64:
        raise ValueError("wanted a number of 64 bits")
    return value


def _plain(value: Any) -> Any:
    if type(value) not in (int, float, str, bool, type(None)):
        raise ValueError("wanted a number, yes or no, or text")
    return value


def _status(value: str) -> str:
    if value not in list(Status):
        raise ValueError(f"wanted one of {', '.join(Status)}")
    return value


Int = Annotated[int, Field(ge=-INT64, lt=INT64)]
Count = Annotated[int, Field(ge=0, lt=INT64)]
Number = Annotated[float, BeforeValidator(_of_64_bits)]
Sample = Annotated[float, Field(ge=1e-9, le=1e12)]
"""Milliseconds, from a picosecond to 30 years: beyond lies no reading of a clock."""
Each = Annotated[list[T], Field(fail_fast=True)]
"""Checked up to the first that is wrong: a file may have millions."""
Block = Each[Sample]
Samples = Each[Each[Block]]
"""[process][block][call]"""
Readings = dict[str, Annotated[float, Field(ge=-INT64, lt=INT64)]]
Reasons = dict[str, str]
Object = dict[str, Any]
PlainValue = Annotated[Any, AfterValidator(_plain)]
StatusWord = Annotated[
    str, AfterValidator(_status), Field(json_schema_extra={"enum": [*map(str, Status)]})
]


class Window(OpenPart):
    """What the device did for a while; probes add columns."""

    model_config = ConfigDict(use_attribute_docstrings=True)
    __pydantic_extra__: dict[str, PlainValue]
    way: str
    """`eager`, or `graph`: the call replayed as a CUDA graph, without launch gaps"""
    window_s: Annotated[Number, Field(gt=0)]
    """its length"""
    calls: Annotated[int, Field(gt=0)]
    """that the device completed in it"""
    sm_active_ratio: float | None = None
    kernel_busy_ratio: float | None = None
    host_cpu_ratio: float | None = None


class Trial(OpenPart):
    """One trial of a wall: ok if the length fitted, oom if not.

    Another status says nothing about memory, only that the call did not go through.
    """

    seq_len: Int
    status: str
    reason: str
    spent_s: Number
