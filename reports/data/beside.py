"""Backends from outside: each runs in a worker of its own, with the baseline timed beside it."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...harness.stats.intervals import latency_interval
from .row_groups import LoadedRow, Row, problem

Blocks = tuple[str, str]


def has_baseline(row: Mapping[str, Any]) -> bool:
    """Whether a baseline was timed beside it."""
    return bool(row.get("beside") and row.get("beside_ms"))


def worker_of(row: Mapping[str, Any]) -> str:
    """Which worker of its run measured a row: "" the one that all built-in backends share."""
    return " ".join(sorted([row["backend"], row["beside"]])) if row.get("beside") else ""


def blocks_of(row: Mapping[str, Any]) -> Blocks | None:
    """Equal of rows that were measured in the same blocks; None if the row does not say."""
    session = row.get("session")
    return None if session is None else (session, worker_of(row))


def baseline_of(row: Mapping[str, Any]) -> Row:
    """The baseline as it was timed in the blocks of a backend from outside, for ratios of times:
    what else the row says is the backend's own.
    """
    return {
        **row,
        "case": f"{row['case']} {row['beside']}",
        "backend": row["beside"],
        "beside": row["backend"],
        "block_ms": row["beside_ms"],
        "beside_ms": row["block_ms"],
        "latency_ms": latency_interval(row["beside_ms"]).value,
        "conditions": None,
    }


def link(rows: Sequence[LoadedRow]) -> None:
    """Let rows of backends from outside know their `shared` one: of their baseline, on the same
    problem, as it ran in the workers of the built-in backends.
    """
    outside = [*filter(has_baseline, rows)]
    known = {(row["backend"], *problem(row).values()): row for row in rows} if outside else {}
    for row in outside:
        row.shared = known.get((row["beside"], *problem(row).values()))


def shared_row(row: Row) -> Row | None:
    return getattr(row, "shared", None)


def in_one_worker(rows: tuple[Row, Row]) -> tuple[Row, Row]:
    """The same rows; of a backend from outside and its baseline, both as that worker timed them."""
    one, other = rows
    if _is_baseline(other, of=one):
        return one, baseline_of(one)
    return (baseline_of(other), other) if _is_baseline(one, of=other) else rows


def baselines(rows: tuple[Row, Row]) -> tuple[Row, Row] | None:
    """For a ratio of ratios: one baseline on one problem, in the blocks of each row. None if
    neither is from outside, if both are of one backend, or without such a baseline.
    """
    one, other = rows
    if one["backend"] == other["backend"]:
        return None
    if not has_baseline(one):
        found = baselines((other, one)) if has_baseline(other) else None
        return found and (found[1], found[0])
    if has_baseline(other):
        is_one = one["beside"] == other["beside"] and problem(one) == problem(other)
        return (baseline_of(one), baseline_of(other)) if is_one else None
    shared = shared_row(one)
    if shared is None or blocks_of(shared) is None or blocks_of(shared) != blocks_of(other):
        return None
    return baseline_of(one), shared


def _is_baseline(row: Row, *, of: Row) -> bool:
    return has_baseline(of) and of["beside"] == row["backend"] and problem(of) == problem(row)
