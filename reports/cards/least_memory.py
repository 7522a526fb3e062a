"""Who needs the least memory, where no length is varied: one line per problem."""

from collections import Counter

import pandas as pd

from ..analysis.speed import race
from ..data.exactness import is_exact
from ..data.row_groups import Group, Row, backends, case_key, groups, label, over_lengths, records
from ..data.run_meta import Meta
from ..elements import Card, Table
from ..formatting import bytes_text, list_text, number_text

ORDER = 31
MOST_LINES = 8


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    """Of runs whose problems are shapes of their own, and nothing but backends is compared."""
    rows = records(frame)
    if over_lengths(rows) or any(run["scenario"].get("contrast") for run in meta.values()):
        return None
    problems = [group for group in groups(rows, None) if len(_known(group)) > 1]
    if len(problems) < 2:
        return None
    best = [_least(group) for group in problems]
    counts = Counter(name for names in best for name in names)
    many = len(problems)
    texts = [f"{name} in {count} of {many}" for name, count in counts.most_common()]
    winner = counts.most_common(1)[0][0]
    most = max((ratio for group in problems for ratio in _ratios(group, winner)), default=1.0)
    return Card(
        name="memory",
        title="Who needs the least memory",
        sentence=(
            f"Of exact backends, {list_text(texts)} {'need' if len(texts) > 1 else 'needs'} the"
            f" fewest peak bytes; others need up to {number_text(most)} times those of {winner}."
        ),
        picture=_table(problems[:MOST_LINES], best),
        subtitle="peak bytes of a call",
        note="Bytes are counted, so there is no interval; equal ones share the first place.",
    )


def _known(group: Group) -> list[Row]:
    return [row for row in race(group.rows).ranking if row.get("peak_bytes") and is_exact(row)]


def _least(group: Group) -> list[str]:
    known = _known(group)
    least = min(row["peak_bytes"] for row in known)
    return [row["backend"] for row in known if row["peak_bytes"] == least]


def _ratios(group: Group, winner: str) -> list[float]:
    known = _known(group)
    base = next((row["peak_bytes"] for row in known if row["backend"] == winner), None)
    return [row["peak_bytes"] / base for row in known] if base else []


def _table(problems: list[Group], best: list[list[str]]) -> Table:
    names = backends(row for group in problems for row in _known(group))
    lines, strong, cases = [], set(), {}
    for line, (group, least) in enumerate(zip(problems, best, strict=False)):
        by_name = {row["backend"]: row for row in _known(group)}
        for place, name in enumerate(names, start=1):
            if name in by_name:
                cases[line, place] = case_key(by_name[name])
            if name in least:
                strong.add((line, place))
        cells = (
            bytes_text(by_name[name]["peak_bytes"]) if name in by_name else "" for name in names
        )
        lines.append((group.label or label(group.problem, ["seq_len"]), *cells))
    return Table(
        title="Peak bytes of a call; bold: the fewest",
        columns=("problem", *names),
        rows=tuple(lines),
        strong=frozenset(strong),
        cases=cases,
    )
