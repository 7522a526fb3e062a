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
    row = record.row()
    texts = {name: _json(name, value) for name, value in row.items()}
    line = ("{" + ", ".join(f'"{name}": {text}' for name, text in texts.items()) + "}\n").encode()
    if len(line) > LINE_CAP_BYTES:
        name = max(texts, key=lambda one: len(texts[one]))
        raise ValueError(
            f"{name}: found {len(texts[name])} bytes, wanted a row of at most"
            f" {LINE_CAP_BYTES >> 20} MiB"
        )
    parsed_row(line)
    return line


def _json(name: str, value: Any) -> str:
    """Raises ValueError, as `_line`."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError as error:
        why = f"not JSON ({error}); wanted null where there is no number"
    except TypeError:
        why = f"found {type(value).__name__}, wanted what JSON has"
    except RecursionError:
        why = "found lists in lists too deep to store, wanted flat ones"
    raise ValueError(f"{name}: {why}")


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
