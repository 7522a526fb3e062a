"""Reads telemetry.jsonl (docs/format.md), one row per sample, in file order.

Telemetry is optional: lines that cannot be read are skipped and counted.
"""

import os
import re
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError

from ...harness.files.safe_files import lines_of
from .read import open_file
from .row_groups import Row

TELEMETRY = "telemetry.jsonl"
NUMBERED = re.compile(r"telemetry-([1-9]\d{0,5})(?:-([1-9]\d{0,5}))?\.jsonl", re.ASCII)
LINE_CAP_BYTES = 1 << 16  # a sample has about 300
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Number = Annotated[float, Field(gt=-1e300, lt=1e300)]


class Line(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class Header(Line):
    """What the samples below it are of."""

    kind: Literal["gpu", "host"]
    period_s: PositiveFloat


class Sample(Line):
    t_ns: Count
    utc: str
    what: str
    sm_clock_mhz: Number | None = None
    memory_clock_mhz: Number | None = None
    temperature_c: Number | None = None
    power_w: Number | None = None
    clock_event_mask: Annotated[int, Field(ge=0, lt=1 << 64)] | None = None
    device_used_bytes: Count | None = None
    kernel_busy_ratio: Number | None = None
    cpu_ratio: Number | None = None
    cpu_clock_mhz: Number | None = None
    resident_bytes: Count | None = None
    host_used_bytes: Count | None = None


Kind = TypeVar("Kind", bound=Line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """`samples`: each with the `kind` of its header. `skipped`: lines that could not be read.
    `period_s`: of the last header.
    """

    samples: list[Row]
    skipped: int
    period_s: float | None


def telemetry_files(run: Path, part: str = "shard") -> dict[str, str]:
    """The files of a run's samples by name, each with whose they are: "", or a shard's of a run
    that was merged, or a device's of a run on several, or of a shard's: their clocks differ.
    """
    found = {TELEMETRY: ""} if os.path.lexists(run / TELEMETRY) else {}
    numbered = filter(None, (NUMBERED.fullmatch(one.name) for one in run.glob("telemetry-*.jsonl")))
    return found | {
        one[0]: f"{part} {one[1]}" + (f", device {one[2]}" if one[2] else "")
        for one in sorted(numbered, key=lambda one: (int(one[1]), int(one[2] or 0)))
    }


def telemetry(run: Path, name: str = TELEMETRY) -> Telemetry:
    """All samples of a file in a run's folder; none without it. Raises BadRun if it is not a plain
    file.
    """
    samples: list[Row] = []
    header, skipped = None, 0
    with open_file(run / name) or BytesIO() as file:
        for line in lines_of(file, LINE_CAP_BYTES):
            if found := _parsed(Header, line):
                header = found
            elif sample := _parsed(Sample, line):
                samples.append({"kind": header and header.kind, **sample.model_dump()})
            else:
                skipped += 1
    period_s = header.period_s if header else None
    return Telemetry(samples=samples, skipped=skipped, period_s=period_s)


def _parsed(kind: type[Kind], line: bytes) -> Kind | None:
    """None too for a line without its end: it was torn."""
    try:
        return kind.model_validate_json(line) if line.endswith(b"\n") else None
    except ValidationError:
        return None
