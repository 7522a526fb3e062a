"""The longest N that fits, where a run looked for it: what was found beside what was predicted."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..data.row_groups import Group, Row, groups
from ..formatting import STATUS_WORDS, bytes_text

LIMITS = {
    "memory": "memory",
    "time": "time limit",
    "length": "largest N there is",
    "backend": "backend itself",
}


def walls(meta: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Every wall that was planned, with the run that it belongs to."""
    return [
        {"run": name, "seq_len": None, **wall}
        for name, run in meta.items()
        for wall in run.get("walls", ())
    ]


def wall_groups(meta: Mapping[str, Mapping[str, Any]]) -> list[Group]:
    """The walls of one problem together, whatever the backend."""
    return groups(walls(meta), None)


def finding(rows: Sequence[Row]) -> str:
    """One sentence on the walls of one problem, the longest N first."""
    found = sorted(
        (row for row in rows if row.get("seq_len_low")), key=lambda row: -row["seq_len_low"]
    )
    parts = [_found_text(row) for row in found]
    parts += [
        f"{row['backend']}: {STATUS_WORDS[row['status']]}" for row in rows if row not in found
    ]
    budgets = {row["memory_bytes"] for row in found}
    return "; ".join(parts) + (f", under {bytes_text(budgets.pop())}" if len(budgets) == 1 else "")


def _found_text(row: Row) -> str:
    in_time = row["limited_by"] == "time"
    beside = (
        [] if row.get("predicted_seq_len") is None else [f"predicted {row['predicted_seq_len']}"]
    )
    if row["limited_by"] != "memory":
        beside.append(f"ended by the {LIMITS.get(row['limited_by'], row['limited_by'])}")
    verb = "was tried up to" if in_time else "fits up to"
    return f"{row['backend']} {verb} N\u00a0=\u00a0{row['seq_len_low']}" + (
        f" ({', '.join(beside)})" if beside else ""
    )


def off_ratio(row: Row) -> float | None:
    """How far the prediction lies from the longest N that fits; None where the search did not get
    to the end of memory.
    """
    if (
        row.get("limited_by") != "memory"
        or row.get("predicted_seq_len") is None
        or not row.get("seq_len_low")
    ):
        return None
    return float(row["predicted_seq_len"] / row["seq_len_low"] - 1)


def note(row: Row) -> str:
    """What the numbers leave open: why there are none, what stopped the backend, whether the
    boundary is sharp.
    """
    if row["status"] != "ok":
        return f"{STATUS_WORDS[row['status']]}: {row['reason']}"
    fits = [probe["seq_len"] for probe in row["probes"] if probe["status"] == "ok"]
    said = (
        ["some longer N fitted too: the boundary is not sharp"]
        if max(fits, default=0) > (row.get("seq_len_low") or 0)
        else []
    )
    if row["limited_by"] == "backend":
        said += [
            probe["reason"]
            for probe in row["probes"]
            if probe["seq_len"] == row.get("seq_len_high")
        ][:1]
    return "; ".join([*said, *filter(None, [row.get("predicted_reason")])])
