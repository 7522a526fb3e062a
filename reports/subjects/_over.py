"""What cards about growth share: which runs they are about, and panels of time over a size."""

from collections.abc import Sequence

from ..data.exactness import is_exact
from ..data.row_groups import Group, Row, axis_title, backends, case_key, family
from ..elements import Panel, Series, Table
from ..formatting import time_text

SPARSE = "sparse_"  # backends whose names begin with this compute a sparse mask only
MOST_PANELS = 3


def challenges(row: Row) -> bool:
    """A backend that was measured to be compared with dense exact attention."""
    return not is_exact(row) or family(row["backend"]).startswith(SPARSE)


def joined(findings: Sequence[tuple[Group, str]]) -> str:
    """One sentence of several problems; with a capital, unless a backend's name opens it."""
    group = findings[0][0]
    parts = [
        f"for {other.label}: {finding}" if other.label else finding for other, finding in findings
    ]
    text = "; ".join(parts)
    starts_with_name = text.partition(" ")[0] in backends(group.rows)
    return text if starts_with_name else text[0].upper() + text[1:]


def time_panels(groups: Sequence[Group], axis: str) -> tuple[Panel, ...]:
    """Latency over a size with its intervals, a panel per problem."""
    return tuple(
        Panel(
            title=group.label,
            x_label=axis_title(axis),
            y_label="latency",
            unit="ms",
            series=tuple(_series(group.rows, name, axis) for name in _timed_backends(group)),
        )
        for group in groups[:MOST_PANELS]
    )


def time_table(groups: Sequence[Group], axis: str) -> Table:
    """The numbers of the panels."""
    names = list(dict.fromkeys(name for group in groups for name in _timed_backends(group)))
    lines = []
    for group in groups[:MOST_PANELS]:
        for value in sorted({row[axis] for row in group.rows}):
            here = {row["backend"]: row for row in group.rows if row[axis] == value}
            cells = (time_text(here[name]["latency_ms"]) if name in here else "" for name in names)
            lines.append((group.label or "all", str(value), *cells))
    return Table(
        title=f"Latency over {axis_title(axis)}",
        columns=("problem", axis_title(axis), *names),
        rows=tuple(lines),
        folded=True,
    )


def _timed_backends(group: Group) -> list[str]:
    return backends(row for row in group.rows if row.get("latency_ms") is not None)


def _series(rows: Sequence[Row], backend: str, axis: str) -> Series:
    timed = (row for row in rows if row["backend"] == backend and row.get("latency_ms") is not None)
    mine = sorted(timed, key=lambda row: row[axis])
    y, low, high = (
        tuple(row.get(f"latency_{part}ms") for row in mine) for part in ("", "low_", "high_")
    )
    return Series(
        backend=backend,
        kind="measured",
        x=tuple(row[axis] for row in mine),
        y=y,
        low=low,
        high=high,
        cases=tuple(map(case_key, mine)),
    )
