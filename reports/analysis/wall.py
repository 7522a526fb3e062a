"""Where each backend's memory ends, within one problem over N."""

from dataclasses import dataclass

from ..data.row_groups import Group, axis_text, backends
from ..formatting import list_text

OUT_OF_MEMORY = ("oom", "predicted_oom")


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """`longest`: the longest N that ran. `first_out`: the shortest N that ran out of memory;
    `tried` where that was seen, not predicted.
    """

    backend: str
    longest: int | None
    first_out: int | None
    tried: bool
    planned: int  # the longest N of the plan


def ends(group: Group) -> list[End]:
    return [_end(group, backend) for backend in backends(group.rows)]


def _end(group: Group, backend: str) -> End:
    rows = [row for row in group.rows if row["backend"] == backend]
    ran = [row["seq_len"] for row in rows if row["status"] == "ok"]
    out = sorted((row["seq_len"], row["status"]) for row in rows if row["status"] in OUT_OF_MEMORY)
    return End(
        backend=backend,
        longest=max(ran, default=None),
        first_out=out[0][0] if out else None,
        tried=any(status == "oom" for n, status in out if n == out[0][0]),
        planned=max(row["seq_len"] for row in rows),
    )


def finding(found: list[End]) -> str:
    """One sentence: who hits the wall where, and who goes on."""
    hit = sorted(
        (end for end in found if end.first_out is not None), key=lambda end: end.first_out or 0
    )
    parts = [
        _hit_text(first, alike, again=place > 0) for place, (first, alike) in enumerate(_alike(hit))
    ]
    free = sorted(
        (end for end in found if end.first_out is None and end.longest is not None),
        key=lambda end: -(end.longest or 0),
    )
    for place, (first, alike) in enumerate(_alike(free)):
        one, longest = len(alike) == 1, first.longest or 0
        if place or (hit and longest < (hit[-1].first_out or 0)):
            verb = "was measured up to" if one else "were measured up to"
        elif hit:
            verb = "still fits at" if longest == hit[-1].first_out else "goes on to"
            verb = verb if one else verb.replace("fits", "fit").replace("goes", "go")
        else:
            verb = "fits up to" if one else "fit up to"
        parts.append(f"{list_text(alike)} {verb} {axis_text('seq_len', longest)}")
    return "; ".join(parts) if parts else "no case was measured or ran out of memory"


def _alike(ends: list[End]) -> list[tuple[End, list[str]]]:
    """Backends that end alike are told of together."""
    alike: dict[tuple[int | None, bool, int | None], list[End]] = {}
    for end in ends:
        alike.setdefault(
            (end.first_out, end.tried, end.longest if end.first_out is None else None), []
        ).append(end)
    return [(members[0], [end.backend for end in members]) for members in alike.values()]


def _hit_text(end: End, names: list[str], *, again: bool) -> str:
    verb = "" if again else " runs out of memory" if len(names) == 1 else " run out of memory"
    return (
        f"{list_text(names)}{verb} at"
        f" {axis_text('seq_len', end.first_out)}{'' if end.tried else ' (predicted)'}"
    )
