"""Where each backend runs out of memory, within one problem over N."""

from collections.abc import Hashable
from dataclasses import dataclass

from ..data.row_groups import Group, axis_text, backends
from ..formatting import list_text

OUT_OF_MEMORY = ("oom", "predicted_oom")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEnd:
    """How far one backend gets.

    `longest`: the longest N that ran. `first_out`: the shortest N that ran out of memory; `tried`
    if that was observed and not predicted.
    """

    backend: str
    longest: int | None
    first_out: int | None
    tried: bool


def memory_ends(group: Group) -> list[MemoryEnd]:
    return [_end(group, backend) for backend in backends(group.rows)]


def _end(group: Group, backend: str) -> MemoryEnd:
    rows = [row for row in group.rows if row["backend"] == backend]
    ran = [row["seq_len"] for row in rows if row["status"] == "ok"]
    out = sorted((row["seq_len"], row["status"]) for row in rows if row["status"] in OUT_OF_MEMORY)
    return MemoryEnd(
        backend=backend,
        longest=max(ran, default=None),
        first_out=out[0][0] if out else None,
        tried=any(status == "oom" for n, status in out if n == out[0][0]),
    )


def finding(ends: list[MemoryEnd]) -> str:
    """One sentence: which backends run out of memory at which N, and how far the others get."""
    hit = sorted(
        (end for end in ends if end.first_out is not None), key=lambda end: end.first_out or 0
    )
    parts: list[str] = []
    for end, names in _same_end(hit):
        verb = "" if parts else " runs out of memory" if len(names) == 1 else " run out of memory"
        predicted = "" if end.tried else " (predicted)"
        parts.append(
            f"{list_text(names)}{verb} at {axis_text('seq_len', end.first_out)}{predicted}"
        )
    free = sorted(
        (end for end in ends if end.first_out is None and end.longest is not None),
        key=lambda end: -(end.longest or 0),
    )
    last_hit = hit[-1].first_out or 0 if hit else 0
    for place, (end, names) in enumerate(_same_end(free)):
        one, longest = len(names) == 1, end.longest or 0
        if place or longest < last_hit:
            verb = "was measured up to" if one else "were measured up to"
        elif not hit:
            verb = "fits up to" if one else "fit up to"
        elif longest == last_hit:
            verb = "still fits at" if one else "still fit at"
        else:
            verb = "goes on to" if one else "go on to"
        parts.append(f"{list_text(names)} {verb} {axis_text('seq_len', longest)}")
    return "; ".join(parts) or "no case was measured or ran out of memory"


def _same_end(ends: list[MemoryEnd]) -> list[tuple[MemoryEnd, list[str]]]:
    """Backends that end at the same N share a clause."""
    same: dict[Hashable, list[MemoryEnd]] = {}
    for end in ends:
        longest = end.longest if end.first_out is None else None
        same.setdefault((end.first_out, end.tried, longest), []).append(end)
    return [(some[0], [end.backend for end in some]) for some in same.values()]
