"""What figures over N share: the axis, the series of rows, and a note on what is not drawn."""

from collections.abc import Iterator, Sequence
from typing import Any

from ..data.row_groups import Group, Row, case_key
from ..elements import Block, Panel, Series, note
from ..formatting import Unit, plural

N_LABEL = "sequence length N (1k = 1024)"


def panel(y_label: str, unit: Unit, series: Sequence[Series], **more: Any) -> Panel:
    return Panel(x_label=N_LABEL, y_label=y_label, unit=unit, series=tuple(series), **more)


def latency_series(backend: str, rows: Sequence[Row], *, per_token: bool = False) -> Series:
    """Latencies with their intervals; `per_token` divides them by N."""
    y, low, high = (
        tuple(
            None if row[field] is None else row[field] / (row["seq_len"] if per_token else 1)
            for row in rows
        )
        for field in ("latency_ms", "latency_low_ms", "latency_high_ms")
    )
    return Series(
        backend=backend,
        kind="measured",
        x=tuple(row["seq_len"] for row in rows),
        y=y,
        low=low,
        high=high,
        cases=tuple(map(case_key, rows)),
    )


def not_drawn(left: Sequence[Group], table: str = "") -> Iterator[Block]:
    """A note on further problems; `table`: where their numbers are, else they are named."""
    if left:
        names = f": {'; '.join(group.label for group in left)}"
        yield note(f"{plural(len(left), 'more problem')} not drawn{table or names}.")
