"""Which cases a figure has no point for, in few words: `naive at 2k (crashed); sdpa:flash
(unsupported)`.
"""

from ..data.row_groups import Row
from ..formatting import STATUS_WORDS, count_text


def absent(rows: list[Row], shown: list[Row]) -> str:
    """The rows that are not shown, told by backend and status; N is left out where it is every N of
    that backend.
    """
    drawn = {row["case"] for row in shown}
    with_points = {row["backend"] for row in shown}
    alike: dict[tuple[str, str], list[int]] = {}
    never: dict[str, list[str]] = {}
    for row in rows:
        why = "without a number" if row["status"] == "ok" else STATUS_WORDS[row["status"]]
        if row["backend"] not in with_points:
            never.setdefault(row["backend"], []).append(why)
        elif row["case"] not in drawn:
            alike.setdefault((row["backend"], why), []).append(row["seq_len"])
    said = [
        f"{backend} at {', '.join(map(count_text, sorted(lengths)))} ({why})"
        for (backend, why), lengths in alike.items()
    ]
    said += [
        f"{backend} ({', '.join(dict.fromkeys(reasons))})" for backend, reasons in never.items()
    ]
    return f". Without a point: {'; '.join(said)}" if said else ""
