"""Decode by memory bandwidth: how much of it each backend reaches, over the length of the cache."""

import pandas as pd

from ..analysis.decode import finding, known_rates, own_share, own_text, timed_steps
from ..data.peaks import memory_bytes_per_s
from ..data.row_groups import Group, Row, axis_title, backends, case_key, groups, records
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, Panel, Series, Table
from ..formatting import bandwidth_text, count_text, plural
from ..subjects._over import MOST_PANELS, tests_claims

ORDER = 16
AXIS = "kv_seq_len"
CACHED = "*"


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    """Of runs that are mostly about decode; in others the section has it."""
    rows = records(frame)
    timed = [row for row in rows if row.get("latency_ms") is not None]
    known = known_rates(rows)
    if tests_claims(meta) or not known or 2 * len(timed_steps(rows)) <= len(timed):
        return None
    found = sorted(groups(known, AXIS), key=lambda group: -max(map(_bytes, group.rows)))
    shown = found[:MOST_PANELS]
    more = len(found) - len(shown)
    text = finding(rows, meta)
    return Card(
        name="decode",
        title="How much of memory's bandwidth",
        subtitle=f"bytes that must be moved over time, by {axis_title(AXIS)}",
        sentence=" ".join(filter(None, (f"{text[0].upper()}{text[1:]}.", _cached(shown)))),
        picture=Figure(
            title=text,
            caption=caption(shown[0].problem, meta),
            description=(
                "Bytes that a decode step must move, over its time, by the length of the cache,"
                " both logarithmic, one line per backend, with 95 % intervals as bars. The"
                " horizontal line is the bandwidth of memory as calibration measured it, if it"
                " did. The table below has every number."
            ),
            panels=tuple(_panel(group, meta) for group in shown),
            table=_table(shown),
        ),
        note=f"{plural(more, 'more problem is', 'more problems are')} in the section below."
        if more
        else "",
        wide=len(shown) > 2,
    )


def _cached(shown: list[Group]) -> str:
    """What the mark of the table means, if it is there."""
    if any(row.get("decode_fits_in_cache") for group in shown for row in group.rows):
        measured = any(own_share(row) for group in shown for row in group.rows)
        so = "so more than 100 % is possible" if measured else "so theirs is no rate of memory"
        return f"Lengths marked {CACHED} in the table fit in the CPU's cache, {so}."
    return ""


def _bytes(row: Row) -> int:
    return int(row["minimal_bytes"])


def _panel(group: Group, meta: Meta) -> Panel:
    whole = memory_bytes_per_s(meta[group.problem["run"]])
    return Panel(
        title=group.label,
        x_label=axis_title(AXIS),
        y_label="rate",
        unit="bytes_per_s",
        series=tuple(_series(group, name) for name in backends(group.rows)),
        line=None if whole is None else (whole, f"measured: {bandwidth_text(whole)}"),
    )


def _series(group: Group, backend: str) -> Series:
    mine = sorted(
        (row for row in group.rows if row["backend"] == backend), key=lambda row: row[AXIS]
    )
    y, low, high = (
        tuple(row.get(f"decode_{part}bytes_per_s") for row in mine)
        for part in ("", "low_", "high_")
    )
    return Series(
        backend=backend,
        kind="measured",
        x=tuple(row[AXIS] for row in mine),
        y=y,
        low=low,
        high=high,
        cases=tuple(map(case_key, mine)),
    )


def _table(shown: list[Group]) -> Table:
    """A line per problem and length: the share of each backend, or its rate."""
    names = backends(row for group in shown for row in group.rows)
    several = any(group.label for group in shown)
    lines = []
    for group in shown:
        for length in sorted({row[AXIS] for row in group.rows}):
            here = {row["backend"]: row for row in group.rows if row[AXIS] == length}
            cells = (own_text(here[name]) if name in here else "" for name in names)
            cached = any(row.get("decode_fits_in_cache") for row in here.values())
            at = count_text(length) + (CACHED if cached else "")
            lines.append((*([group.label] if several else []), at, *cells))
    return Table(
        title="Share of the measured memory bandwidth, or the rate where none was measured",
        columns=(*(["problem"] if several else []), axis_title(AXIS), *names),
        rows=tuple(lines),
        folded=True,
    )
