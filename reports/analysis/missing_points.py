"""Which cases a figure has no point for: `naive at 2k (crashed); sdpa:flash (unsupported)`."""

from ..data.row_groups import Row
from ..formatting import STATUS_WORDS, count_text


def missing_points(rows: list[Row], shown: list[Row]) -> str:
    """The rows without a point, by backend and status; without N if it is every N of a backend."""
    drawn = {row["case"] for row in shown}
    with_points = {row["backend"] for row in shown}
    some: dict[tuple[str, str], list[int]] = {}
    every: dict[str, list[str]] = {}
    for row in rows:
        why = "without a number" if row["status"] == "ok" else STATUS_WORDS[row["status"]]
        if row["backend"] not in with_points:
            every.setdefault(row["backend"], []).append(why)
        elif row["case"] not in drawn:
            some.setdefault((row["backend"], why), []).append(row["seq_len"])
    texts = [
        f"{backend} at {', '.join(map(count_text, sorted(lengths)))} ({why})"
        for (backend, why), lengths in some.items()
    ]
    texts += [f"{backend} ({', '.join(dict.fromkeys(why))})" for backend, why in every.items()]
    return f". Without a point: {'; '.join(texts)}" if texts else ""
