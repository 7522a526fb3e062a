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
    said = [f"{sentence}." for sentence in findings(rows, meta)]
    lines, cases, failed = [], {}, set()
    found = [(name, *race) for name in names for race in races(name, rows)]
    for place, (name, group, row, best, ratio) in enumerate(found[:MOST_ROWS]):
        ok = row["status"] == "ok"
        time = time_text(row["latency_ms"]) if row.get("latency_ms") is not None else ""
        over = "" if ratio is None else f"{ratio.text}, {best}"
        where = group.label or axis_text("seq_len", row["seq_len"])
        lines.append((name, where, time if ok else STATUS_WORDS[row["status"]], over))
        cases[place, 2] = case_key(row)
        if not ok:
            failed.add((place, 2))
    left = len(found) - len(lines)
    return Card(
        name="own",
        title="Your backend" if len(names) == 1 else "Your backends",
        subtitle="each of its cases, beside the best other exact backend",
        sentence=" ".join(said),
        picture=Table(
            title="Your backend, case by case",
            columns=("backend", "problem", "result", "times the best other one"),
            rows=tuple(lines),
            cases=cases,
            failed=frozenset(failed),
        ),
        note=f"{plural(left, 'more case')} below." if left else "",
    )
