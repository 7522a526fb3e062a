"""Rows as plain values, and the problems they are about: what is equal, what varies, how to
say it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan, sqrt
from typing import Any, Literal

import pandas as pd

from ..formatting import count_text

Row = dict[str, Any]
AXES = (
    *(
        "run",
        "device",
        "python",
        "batch",
        "seq_len",
        "kv_seq_len",
        "d_model",
        "heads",
        "kv_heads",
        "d_k",
        "d_v",
    ),
    *("dtype", "causal", "causal_align", "mask", "window", "passes", "scope"),
)
_SYMBOLS = {
    "batch": "B",
    "seq_len": "N",
    "kv_seq_len": "N_kv",
    "d_model": "d_model",
    "heads": "h",
    "kv_heads": "h_kv",
    "d_k": "d_k",
    "d_v": "d_v",
}
ROOT = "√N"  # the usual stride: round(sqrt(kv_seq_len))
_ABSENT = {("mask", "none"), ("window", 0)}  # a wall's row has its window as the file has it
_FOLLOWS = {"kv_seq_len": "N", "kv_heads": "h", "d_k": "d_model/h", "d_v": "d_model/h"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows that are one problem but for the axis that they are drawn over; `label` says how it
    differs from the other groups.
    """

    label: str
    problem: dict[str, Any]
    rows: list[Row]

    def said(self, finding: str) -> str:
        """A finding with the problem that it holds for, where there is more than one."""
        return f"For {self.label}: {finding}" if self.label else finding


def records(frame: pd.DataFrame) -> list[Row]:
    """The rows of a frame as dictionaries, with None for whatever is missing."""
    names = [str(name) for name in frame.columns]
    columns = [[plain(value) for value in frame[name].tolist()] for name in frame.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def plain(value: Any) -> Any:
    return None if value is pd.NA or (isinstance(value, float) and isnan(value)) else value


def problem(row: Row) -> dict[str, Any]:
    """The problem of a row; a size that follows another one in the usual way is named by it:
    kv_seq_len "N", d_k "d_model/h".
    """
    axes: dict[str, Any] = {axis: row.get(axis) for axis in AXES}
    n, d, h = axes["seq_len"], axes["d_model"], axes["heads"]
    follows = {
        "kv_seq_len": axes["kv_seq_len"] == n,
        "kv_heads": axes["kv_heads"] == h,
        **{
            width: bool(d and h and axes[width]) and axes[width] * h == d
            for width in ("d_k", "d_v")
        },
    }
    return axes | {axis: _FOLLOWS[axis] for axis, usual in follows.items() if usual}


def groups(rows: Iterable[Row], over: Literal["seq_len", "heads"] | None) -> list[Group]:
    """Equal problems together, whatever the backend and the value on the axis `over`, in the order
    of the plan.

    Strides that are the root of N for every N are named by it, as sizes that follow another are.
    """
    rows = list(rows)
    rooted = _strides_are_roots(rows)
    together: dict[tuple[Any, ...], tuple[dict[str, Any], list[Row]]] = {}
    for row in rows:
        if over is not None and row.get(over) is None:
            continue
        equal = {axis: value for axis, value in problem(row).items() if axis != over}
        if rooted and row.get("mask") == "strided":
            equal["window"] = ROOT
        together.setdefault(tuple(equal.values()), (equal, []))[1].append(row)
    problems = [equal for equal, _ in together.values()]
    varying = varying_axes(problems)
    return [
        Group(label=label(equal, varying), problem=equal, rows=members)
        for equal, members in together.values()
    ]


def _strides_are_roots(rows: Iterable[Row]) -> bool:
    """Whether every stride is the usual one of its length, and lengths tell that it follows
    them.
    """
    strides = {
        (row["kv_seq_len"], row.get("window"))
        for row in rows
        if row.get("mask") == "strided" and row.get("kv_seq_len")
    }
    return len(strides) > 1 and all(
        stride == max(1, round(sqrt(length))) for length, stride in strides
    )


def varying_axes(problems: list[dict[str, Any]]) -> list[str]:
    return [
        axis
        for axis in AXES
        if any(other.get(axis) != problems[0].get(axis) for other in problems[1:])
    ]


def label(of: dict[str, Any], axes: Iterable[str] = AXES) -> str:
    """A problem in words, by the axes named: `N = 8k, h = 8, bf16, causal`."""
    return ", ".join(text for axis in axes if axis in of and (text := axis_text(axis, of[axis])))


def axis_text(axis: str, value: Any) -> str:
    if value is None or value == "" or (axis, value) in _ABSENT:
        return ""
    if axis == "causal":
        return "causal" if value else "not causal"
    if axis in _SYMBOLS:
        # no-break spaces: stays on one line
        return f"{_SYMBOLS[axis]}\u00a0=\u00a0{value_text(axis, value)}"
    said = {
        # an environment, by the name that --python gave its interpreter
        "python": f"python {value}",
        "passes": f"{value} pass" if "+" not in str(value) else str(value),
        "causal_align": f"aligned {value}",
        "mask": f"{value} mask",
        "window": f"window\u00a0{value}",
    }
    return said.get(axis, str(value))


def axis_title(axis: str) -> str:
    return _SYMBOLS.get(axis, axis)


def value_text(axis: str, value: Any) -> str:
    return (
        count_text(value)
        if axis in ("seq_len", "kv_seq_len") and isinstance(value, int)
        else str(value)
    )


def unusual(of: dict[str, Any]) -> dict[str, Any]:
    """The problem without what goes without saying: sizes that follow another, and the
    run's name.
    """
    return {
        axis: value for axis, value in of.items() if axis != "run" and _FOLLOWS.get(axis) != value
    }


def backends(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row["backend"] for row in rows))
