"""The longest N that fits, for runs that searched for it, beside the prediction."""

from collections.abc import Sequence

from ..data.row_groups import Group, Row, groups
from ..data.run_meta import Meta
from ..formatting import STATUS_WORDS, bytes_text, length_text

LIMITS = {
    "memory": "memory",
    "time": "time limit",
    "length": "largest supported N",
    "backend": "backend itself",
}


def wall_groups(meta: Meta) -> list[Group]:
    """Every planned wall, by problem."""
    return groups(
        (
            {"run": name, "seq_len": None, **wall}
            for name, run in meta.items()
            for wall in run.get("walls", ())
        ),
        None,
    )


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
    limit, predicted = row["limited_by"], row.get("predicted_seq_len")
    least = "at least " if is_bound(row) else ""
    remarks = [] if predicted is None else [f"predicted {least}{length_text(predicted)}"]
    if limit is None:  # the search did not come to its end
        remarks.append(f"search ended early: {STATUS_WORDS.get(row['status'], row['status'])}")
    elif limit != "memory":
        remarks.append(f"ended by the {LIMITS.get(limit, limit)}")
    verb = "was tried up to" if limit == "time" else "fits up to"
    text = f"{row['backend']} {verb} N\u00a0=\u00a0{length_text(row['seq_len_low'])}"
    return f"{text} ({', '.join(remarks)})" if remarks else text


def is_bound(row: Row) -> bool:
    """Whether the formula of another dtype or backend stands in: the prediction is a least N."""
    return row.get("predicted_source") == "nearest"


def off_ratio(row: Row) -> float | None:
    """Predicted over found N, minus 1; None unless memory ended the search, and for a bound."""
    predicted, low = row.get("predicted_seq_len"), row.get("seq_len_low")
    if row.get("limited_by") != "memory" or predicted is None or not low or is_bound(row):
        return None
    return float(predicted / low - 1)


def note(row: Row) -> str:
    """Why there are no numbers, what stopped the backend, or whether the boundary is not sharp."""
    if row["status"] != "ok":
        return f"{STATUS_WORDS[row['status']]}: {row['reason']}"
    notes = []
    fits = [trial["seq_len"] for trial in row["probes"] if trial["status"] == "ok"]
    if max(fits, default=0) > (row.get("seq_len_low") or 0):
        notes.append("some longer N fitted too: the boundary is not sharp")
    if row["limited_by"] == "backend":
        at_end = (one for one in row["probes"] if one["seq_len"] == row.get("seq_len_high"))
        notes += [one["reason"] for one in at_end][:1]
    return "; ".join([*notes, *filter(None, [row.get("predicted_reason")])])
