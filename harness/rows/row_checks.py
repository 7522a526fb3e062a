"""Whether a row of rows.jsonl is what row_schema.py says; the functions raise ValueError with
`field: what was found, what was wanted`.
"""

from collections.abc import Mapping
from typing import Any

from .row_schema import FIELDS, LATER_VALUES, SAMPLES

Types = Mapping[str, tuple[type, ...]]
INT64 = 1 << 63
FROM_ZERO = (
    *("input_bytes", "peak_bytes", "output_bytes", "predicted_peak_bytes", "meta_peak_bytes"),
    *("workspace_bytes", "outside_bytes", "saved_bytes"),
    *("work_flops", "work_exps", "minimal_bytes"),
)
NUMBERS = frozenset((int, float))  # by their types: bool is none
SAMPLE_MS = (1e-9, 1e12)  # a picosecond, and 30 years: beyond lies no reading of a clock
VALUES = {
    "status": (
        *("ok", "oom", "predicted_oom", "unsupported", "unavailable", "incorrect", "timeout"),
        *("crashed", "error", "interrupted"),
    ),
    "exactness": (None, "exact", "approximate", "other"),
    "input_order": (None, "heads", "model"),
}
TRIAL: Types = {"seq_len": (int,), "status": (str,), "reason": (str,), "spent_s": (int, float)}
WINDOW: Types = {"way": (str,), "window_s": (int, float), "calls": (int,)}
WINDOW_VALUES = (int, float, str, bool, type(None))
_DEFAULTS = {
    kind: tuple(
        (one.name, LATER_VALUES.get(one.name) if not one.nullable else None)
        for one in fields.values()
        if (one.nullable and not one.later) or (not one.nullable and one.name in LATER_VALUES)
    )
    for kind, fields in FIELDS.items()
}
"""What a field is that lacks in a row, by kind: name and value."""
_WANTED = {
    kind: tuple(
        (one.name, one.types, one.nullable or (one.later and one.name not in LATER_VALUES))
        for one in fields.values()
    )
    for kind, fields in FIELDS.items()
}
"""The fields of a row, by kind: name, types, and whether it may be null or lack."""


def check_fields(document: Mapping[str, Any], wanted: Types) -> None:
    """Each wanted field is there, with one of its types."""
    for field, types in wanted.items():
        value = document.get(field)
        if type(value) not in types or not _fits(value):  # bool is an int to Python
            found = "nothing" if value is None else ascii(value)[:40]
            names = " or ".join(one.__name__ for one in types)
            raise ValueError(f"{field}: found {found}, wanted {names}")


def _fits(value: object) -> bool:
    """A huge int is none to a data frame."""
    return type(value) is not int or -INT64 <= value < INT64


def check_object(one: object, wanted: Types, name: str) -> None:
    """As check_fields, of a part of a document, which must be an object."""
    if not isinstance(one, dict):
        raise ValueError(f"{name}: wanted an object")
    try:
        check_fields(one, wanted)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def check_row(row: dict[str, Any]) -> None:
    """Of a kind in FIELDS. Fields that the first version did not have get their later values, and
    others that may be null are null if they lack.
    """
    for name, value in _DEFAULTS[row["kind"]]:
        row.setdefault(name, value)
    for name, types, is_optional in _WANTED[row["kind"]]:
        value = row.get(name)
        if value is None and is_optional:
            continue
        if type(value) not in types or not _fits(value):
            check_fields(row, {name: types})
    for name, values in VALUES.items():
        if row.get(name) not in values:
            wanted = ", ".join(value for value in values if value)
            found = ascii(row.get(name))[:40]
            raise ValueError(f"{name}: found {found}, wanted one of {wanted}")
    for name in FROM_ZERO:
        if (row.get(name) or 0) < 0:
            raise ValueError(f"{name}: found {row[name]}, wanted 0 or more")
    for number, trial in enumerate(row["probes"] if row["kind"] == "wall" else ()):
        check_object(trial, TRIAL, f"probes[{number}]")
    if row["kind"] == "kernel":
        _check_kernel(row)
    for name in SAMPLES:
        if not all(_is_block_of_samples(block) for block in _blocks(row.get(name))):
            raise ValueError(
                f"{name}: wanted positive numbers, from {SAMPLE_MS[0]:g} to {SAMPLE_MS[1]:g}, in"
                " lists [process][block][call]"
            )
    if not all(_is_readings(block) for block in _blocks(row.get("conditions"))):
        raise ValueError("conditions: wanted objects of numbers in lists [process][block]")
    if not all(isinstance(finding, dict) for finding in row.get("findings") or []):
        raise ValueError("findings: wanted a list of objects")
    for number, window in enumerate(row.get("windows") or []):
        check_object(window, WINDOW, f"windows[{number}]")
        _check_window(window, f"windows[{number}]")
    if not all(isinstance(reason, str) for reason in (row.get("missing") or {}).values()):
        raise ValueError("missing: wanted a reason as text for each name")


def _check_kernel(row: dict[str, Any]) -> None:
    for name in ("instructions", "block_limits"):
        if not all(type(value) is int and value >= 0 for value in (row.get(name) or {}).values()):
            raise ValueError(f"{name}: wanted numbers from 0 on")
    if not all(isinstance(name, str) for name in row.get("limited_by") or []):
        raise ValueError("limited_by: wanted names")
    if not all(map(_is_cycles, row.get("loop_parts") or [])):
        raise ValueError("loop_parts: wanted objects of numbers from 0 on")
    if not all(isinstance(value, int | str | None) for value in row["config"].values()):
        raise ValueError("config: wanted numbers, yes or no, and names")
    counts = [
        field for field in FIELDS["kernel"].values() if field.kind == "int" and field.nullable
    ]
    if any((row.get(field.name) or 0) < 0 for field in counts):
        raise ValueError("a count below 0")


def _is_cycles(part: object) -> bool:
    return isinstance(part, dict) and all(
        type(x) in (int, float) and 0 <= x < INT64 for x in part.values()
    )


def _check_window(window: dict[str, Any], name: str) -> None:
    is_plain = all(type(value) in WINDOW_VALUES for value in window.values())
    if not (window["window_s"] > 0 and window["calls"] > 0 and is_plain):
        raise ValueError(f"{name}: wanted numbers, a window_s and calls above 0")


def _blocks(processes: list[Any] | None) -> list[Any]:
    """Of all processes; None for a process that is no list."""
    return [
        block
        for process in processes or []
        for block in (process if isinstance(process, list) else [None])
    ]


def _is_block_of_samples(block: object) -> bool:
    least, most = SAMPLE_MS
    if not isinstance(block, list) or not NUMBERS.issuperset(map(type, block)):
        return False
    return not block or (least <= min(block) and max(block) <= most)


def _is_readings(block: object) -> bool:
    if not isinstance(block, dict):
        return False
    values = block.values()
    if not block or not NUMBERS.issuperset(map(type, values)):
        return not block
    return (min(values) >= -INT64 and max(values) < INT64) or all(map(_fits, values))
