"""From which N on something else beats dense exact attention: sparse, approximate or recurrent."""

import pandas as pd

from ..analysis import approximate, recurrence, sparse
from ..analysis.crossover import Crossover
from ..analysis.ratio import disturbed
from ..analysis.speedup import baseline
from ..data.row_groups import Group, Row, records
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, Table
from ..formatting import plural
from ..subjects._over import MOST_PANELS, joined, tests_claims, time_panels

ORDER = 17


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    """None for runs that test claims: their ledger and their growth answer."""
    rows = records(frame)
    if tests_claims(meta):
        return None
    base = {name: baseline(run, rows) or "" for name, run in meta.items()}
    found: list[tuple[Group, str, list[Crossover]]] = []
    for group in sparse.sparse_groups(rows):
        lead = base[group.problem["run"]]
        found.append((group, sparse.finding(group, lead), sparse.crossovers(group, lead)))
    for group in approximate.approximating(rows):
        found.append((group, approximate.finding(group), approximate.crossovers(group)))
    for group in recurrence.recurring(rows):
        found.append((group, recurrence.finding(group), recurrence.crossovers(group)))
    known = [one for one in found if one[2] and len(one[0].lengths) > 1]
    if not known:
        return None
    shown = known[:MOST_PANELS]
    groups = [approximate.informative(group) for group, _, _ in shown]
    text = joined([(group, finding) for group, finding, _ in shown])
    more = len(known) - len(shown)
    return Card(
        name="crossover",
        title="From which N on",
        sentence=f"{text}.",
        picture=Figure(
            title=text,
            caption=caption(groups[0].problem, meta),
            description=(
                "Latency over the sequence length N, both logarithmic, one line per backend, with"
                " 95 % intervals as bars. The table below has the crossovers."
            ),
            panels=time_panels(groups, "seq_len"),
            table=_table(shown),
        ),
        subtitle="latency over N",
        note=(
            "Faster means by more than noise, at every longer N that was measured."
            + _disturbed([row for group in groups for row in group.rows])
            + (
                f" {plural(more, 'more problem is', 'more problems are')} in the sections below."
                if more > 0
                else ""
            )
        ),
        wide=len(groups) > 2,
    )


def _disturbed(rows: list[Row]) -> str:
    timed = [row for row in rows if row.get("latency_ms") is not None]
    count = sum(map(disturbed, timed))
    of = f" Other work disturbed most blocks of {count} of {plural(len(timed), 'case')}."
    return of if count else ""


def _table(shown: list[tuple[Group, str, list[Crossover]]]) -> Table:
    return Table(
        title="From which N on a backend is clearly faster than dense exact attention",
        columns=("problem", "backend", "than", "faster"),
        rows=tuple(
            (group.label or "all", one.backend, one.against, one.text)
            for group, _, crossings in shown
            for one in crossings
        ),
    )
