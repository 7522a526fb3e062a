"""What is stored of a record: its row as one line, which the reader takes."""

import json
import re
from dataclasses import replace
from typing import Any

from .record import Record, Status
from .run_files import LINE_CAP_BYTES, parsed_row

OF_THE_PLAN = (
    *("input_bytes", "work_flops", "work_exps", "minimal_bytes"),
    *("predicted_peak_bytes", "meta_peak_bytes"),
)
"""What is computed of a case before it runs, and of an absurd one is beyond 64 bits."""
MOST_CHARACTERS = 4096  # of a reason, a log tail or a traceback
TEXT = frozenset((str,))
SCALARS = frozenset((str, int, float, bool, type(None)))
MOST_DEPTH = 20  # of lists in lists; the reader's limit is beyond
OF_AN_ERROR = ("started_utc", "spent_s", "phase", "exactness", "log_tail")
"""What the row of an error keeps, besides fields that every row has."""


def stored(record: Record) -> tuple[Record, bytes]:
    """The record and its line, long texts shortened; an error instead if the reader refuses it."""
    record = _bounded(record)
    try:
        return record, _line(record)
    except ValueError as error:
        reason = f"its row does not fit the format: {error}"
    from .model import FIELDS

    fields = FIELDS[record.kind]
    kept = {
        name: value
        for name, value in record.values.items()
        if name in OF_AN_ERROR or fields[name].required
    }
    while True:  # leave out one value after the other, until the rest fits
        failed = replace(record, status=Status.ERROR, reason=reason, values=kept)
        try:
            return failed, _line(failed)
        except ValueError as error:
            if (name := _field_in(error)) not in kept:
                raise
            del kept[name]


def _field_in(error: ValueError) -> str:
    """The field that a refusal begins with, as `probes[3]: ...`."""
    return re.split(r"\W", str(error), maxsplit=1)[0]


def _line(record: Record) -> bytes:
    """Raises ValueError: `field: what was found, what was wanted`."""
    from .model import check_document  # needs pydantic, which takes 0.1 s: not to start a command

    row = record.row()
    try:
        line = (json.dumps(row, allow_nan=False) + "\n").encode()
    except (TypeError, ValueError, RecursionError):
        raise ValueError(_not_json(record)) from None
    if len(line) > LINE_CAP_BYTES:
        name, size = max(_sizes(record).items(), key=lambda one: one[1])
        raise ValueError(
            f"{name}: found {size} bytes, wanted a row of at most {LINE_CAP_BYTES >> 20} MiB"
        )
    if is_plain(row):  # what reading the line would give: half the time of a row
        check_document(row)
    else:
        parsed_row(line)
    return line


def is_plain(value: Any, depth: int = MOST_DEPTH) -> bool:
    """Whether what JSON can hold comes back as it was: no tuples, no keys that are not text, no
    types of ours or of numpy that only look like a number or text.
    """
    if type(value) is dict:
        if not TEXT.issuperset(map(type, value)):
            return False
        value = value.values()
    elif type(value) is not list:
        return type(value) in SCALARS
    if SCALARS.issuperset(map(type, value)):
        return True
    return depth > 0 and all(is_plain(one, depth - 1) for one in value)


def _bounded(record: Record) -> Record:
    """With the begin of a long reason and the end of a long log; without what exceeds 64 bits."""
    reason, tail = record.reason, record["log_tail"]
    if beyond := [name for name in OF_THE_PLAN if _is_beyond(record[name])]:
        record = replace(record, values={**record.values, **dict.fromkeys(beyond)})
    if isinstance(reason, str) and len(reason) > MOST_CHARACTERS:
        reason = f"{reason[:MOST_CHARACTERS]}... ({len(reason)} characters)"
        record = replace(record, reason=reason)
    if isinstance(tail, str) and len(tail) > MOST_CHARACTERS:
        record = replace(record, values={**record.values, "log_tail": tail[-MOST_CHARACTERS:]})
    return record


def _is_beyond(value: Any) -> bool:
    return type(value) is int and value >= 1 << 63


def _not_json(record: Record) -> str:
    for name, value in record.row().items():
        if why := _why_not_json(value):
            return f"{name}: {why}"
    return "its fields are nested too deep"


def _why_not_json(value: Any) -> str:
    """Why a value cannot be stored as JSON; "" if it can."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError as error:
        return f"not JSON ({error}); wanted null where there is no number"
    except TypeError:
        return f"found {type(value).__name__}, wanted what JSON has"
    except RecursionError:
        return "found lists in lists too deep to store, wanted flat ones"
    return ""


def _sizes(record: Record) -> dict[str, int]:
    return {name: len(json.dumps(value)) for name, value in record.row().items()}
