"""Which cases a figure has no point for, in few words: `naive at 2k (crashed); sdpa:flash (unsupported)`."""

from ..words import STATUS_WORDS, count_text
from .problems import Row


def absent(rows: list[Row], shown: list[Row]) -> str:
    """The rows that are not shown, told by backend and status; N is left out where it is every N of that backend."""
    drawn = {row["case"] for row in shown}
    alike: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        if row["case"] not in drawn:
            why = "without a number" if row["status"] == "ok" else STATUS_WORDS[row["status"]]
            alike.setdefault((row["backend"], why), []).append(row["seq_len"])
    every = {backend: sum(row["backend"] == backend for row in rows) for backend, _ in alike}
    said = [
        f"{backend} ({why})" if len(lengths) == every[backend] else f"{backend} at {', '.join(map(count_text, sorted(lengths)))} ({why})"
        for (backend, why), lengths in alike.items()
    ]
    return f". Without a point: {'; '.join(said)}" if said else ""
