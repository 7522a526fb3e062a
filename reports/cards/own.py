"""A backend of the reader's own: wrong, failed, or its time over that of the best other one."""

import pandas as pd

from ..analysis.own_backends import findings, own_backends, races
from ..data.row_groups import axis_text, case_key, records
from ..data.run_meta import Meta
from ..elements import Card, Table
from ..formatting import STATUS_WORDS, plural, time_text

ORDER = 1
MOST_ROWS = 8


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    rows = records(frame)
    names = own_backends(rows, meta)
    if not names:
        return None
    several = len(names) > 1
    said = [f"{sentence}." for sentence in findings(rows, meta)]
    lines, cases, failed = [], {}, set()
    found = [(name, *race) for name in names for race in races(name, rows)]
    for place, (name, group, row, best, ratio) in enumerate(found[:MOST_ROWS]):
        ok = row["status"] == "ok"
        time = time_text(row["latency_ms"]) if row.get("latency_ms") is not None else ""
        over = "" if ratio is None else f"{ratio.text}, {best}"
        where = group.label or axis_text("seq_len", row["seq_len"])
        result = time if ok else STATUS_WORDS[row["status"]]
        lines.append((*([name] if several else []), where, result, over))
        cases[place, len(lines[-1]) - 2] = case_key(row)
        if not ok:
            failed.add((place, len(lines[-1]) - 2))
    left = len(found) - len(lines)
    return Card(
        name="own",
        title="Your backends" if several else "Your backend",
        subtitle="each of its cases, beside the best other exact backend",
        sentence=" ".join(said),
        picture=Table(
            title="Your backend, case by case",
            columns=(
                *(["backend"] if several else []),
                "problem",
                "result",
                "\u00d7 the best other",
            ),
            rows=tuple(lines),
            cases=cases,
            failed=frozenset(failed),
        ),
        note=f"{plural(left, 'more case')} below." if left else "",
    )
