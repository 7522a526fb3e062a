"""What is stored of a record: its row as one line, which the reader takes."""

import json
from dataclasses import replace
from typing import Any

from .record import Record, Status
from .row_checks import check_fields
from .row_schema import FIELDS, Field
from .run_files import LINE_CAP_BYTES, parsed_row

MOST_CHARACTERS = 4096  # of a reason, a log tail or a traceback
OF_AN_ERROR = ("started_utc", "spent_s", "phase", "exactness", "log_tail")
"""What the row of an error keeps, besides fields that may not be null."""


def stored(record: Record) -> tuple[Record, bytes]:
    """The record and its line, long texts shortened; an error instead if the reader refuses it."""
    record = _bounded(record)
    try:
        return record, _line(record)
    except ValueError as error:
        failed = _failed(record, str(error))
    return failed, _line(failed)


def _line(record: Record) -> bytes:
    """Raises ValueError: `field: what was found, what was wanted`."""
    try:
        line = (json.dumps(record.row(), allow_nan=False) + "\n").encode()
    except (TypeError, ValueError, RecursionError):
        raise ValueError(_not_json(record)) from None
    if len(line) > LINE_CAP_BYTES:
        name, size = max(_sizes(record).items(), key=lambda one: one[1])
        raise ValueError(
            f"{name}: found {size} bytes, wanted a row of at most {LINE_CAP_BYTES >> 20} MiB"
        )
    parsed_row(line)
    return line


def _bounded(record: Record) -> Record:
    """With the begin of a long reason, and the end of a long log."""
    reason, tail = record.reason, record["log_tail"]
    if isinstance(reason, str) and len(reason) > MOST_CHARACTERS:
        reason = f"{reason[:MOST_CHARACTERS]}... ({len(reason)} characters)"
        record = replace(record, reason=reason)
    if isinstance(tail, str) and len(tail) > MOST_CHARACTERS:
        record = replace(record, values={**record.values, "log_tail": tail[-MOST_CHARACTERS:]})
    return record


def _failed(record: Record, why: str) -> Record:
    """The same case as an error, without what was measured."""
    fields = FIELDS[record.kind]
    kept = {
        name: value
        for name, value in record.values.items()
        if (name in OF_AN_ERROR or not fields[name].nullable) and _fits(fields[name], value)
    }
    reason = f"its row does not fit the format: {why}"
    return replace(record, status=Status.ERROR, reason=reason, values=kept)


def _fits(field: Field, value: Any) -> bool:
    """Whether a value alone could stand in a row."""
    try:
        check_fields({field.name: value}, {field.name: field.types})
    except ValueError:
        return False
    return not _why_not_json(value)


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
