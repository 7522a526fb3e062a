"""Reads telemetry.jsonl (docs/format.md) as a table with one row per sample, in file order.

Telemetry is optional: lines that cannot be read are skipped and counted.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, TypeVar

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError, create_model

from .read import open_file

TELEMETRY = "telemetry.jsonl"
NUMBERED = re.compile(r"telemetry-([1-9]\d{0,5})(?:-([1-9]\d{0,5}))?\.jsonl", re.ASCII)
LINE_CAP_BYTES = 1 << 16  # a sample has about 300
_TEXT, _COUNT, _MASK, _NUMBER = "string[python]", "Int64", "UInt64", "float64"
COLUMNS = {
    "kind": _TEXT,
    "t_ns": _COUNT,
    **dict.fromkeys(("utc", "what"), _TEXT),
    **dict.fromkeys(("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w"), _NUMBER),
    "clock_event_mask": _MASK,  # its highest bit has a meaning: "unknown"
    "device_used_bytes": _COUNT,
    **dict.fromkeys(("kernel_busy_ratio", "cpu_ratio", "cpu_clock_mhz"), _NUMBER),
    **dict.fromkeys(("resident_bytes", "host_used_bytes"), _COUNT),
}
NEEDED = ("t_ns", "utc", "what")
_TYPES: dict[str, Any] = {
    _TEXT: str,
    _COUNT: Annotated[int, Field(ge=0, lt=1 << 63)],
    _MASK: Annotated[int, Field(ge=0, lt=1 << 64)],
    _NUMBER: Annotated[float, Field(gt=-1e300, lt=1e300)],
}


class Line(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class Header(Line):
    """What the samples below it are of."""

    kind: Literal["gpu", "host"]
    uuid: str | None = None
    period_s: PositiveFloat
    board_wide: list[str]
    missing: dict[str, str]


_FIELDS: dict[str, Any] = {
    name: (_TYPES[dtype], ...) if name in NEEDED else (_TYPES[dtype] | None, None)
    for name, dtype in COLUMNS.items()
}
Sample = create_model("Sample", __base__=Line, **_FIELDS | {"kind": (None, None)})
Kind = TypeVar("Kind", bound=Line)


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


def telemetry(run: Path, name: str = TELEMETRY) -> pd.DataFrame:
    """All samples of a file in a run's folder; empty without it.

    `attrs`: `skipped`, the number of skipped lines; `uuid`, `period_s`, `board_wide` of the last
    header; `missing` (name: reason) of all headers. Raises BadRun if it is not a plain file.
    """
    samples: list[dict[str, Any]] = []
    header, skipped = None, 0
    missing: dict[str, str] = {}
    file = open_file(run / name)
    for line in _lines(file) if file else ():
        if found := _parsed(Header, line):
            header = found
            missing |= found.missing
        elif sample := _parsed(Sample, line):
            kind = header.kind if header is not None else None
            samples.append({**sample.model_dump(), "kind": kind})
        else:
            skipped += 1
    frame = pd.DataFrame(
        {
            name: pd.Series([sample[name] for sample in samples], dtype=dtype)
            for name, dtype in COLUMNS.items()
        }
    )
    frame.attrs |= {
        "skipped": skipped,
        "uuid": header.uuid if header else None,
        "period_s": header.period_s if header else None,
        "board_wide": header.board_wide if header else [],
        "missing": missing,
    }
    return frame


def _parsed(kind: type[Kind], line: bytes) -> Kind | None:
    try:
        return kind.model_validate_json(line)
    except ValidationError:
        return None


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Whole lines; an empty one for each line that is too long or torn."""
    with file:
        while line := file.readline(LINE_CAP_BYTES):
            whole = line.endswith(b"\n")
            while line and not line.endswith(b"\n"):
                line = file.readline(LINE_CAP_BYTES)
            yield line if whole else b""
