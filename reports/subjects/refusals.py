"""Failed and skipped cases by status and reason, with the end of the logs of crashed ones."""

import re
from collections.abc import Iterator, Sequence

from ...harness.files.printable import visible
from ..data.row_groups import Row, backends, by
from ..data.run_meta import Meta
from ..elements import Block, Text, note, table_of
from ..formatting import STATUS_WORDS, count_text, list_text, plural
from . import Subject

TITLE = "Failed and skipped cases"
SECTION = "trust"
ORDER = 50
MOST_LOGS = 5
COMMAND = re.compile(r"^(?=\s*::)", re.M)
"""Where a line begins that would be a command in a job of GitHub."""
LOG_LINES = 15
MOST_GROUPS = 100
SAME = ("status", "reason")


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    failed = [row for row in rows if row["status"] != "ok"]
    if not failed:
        return Subject(
            lacking="Every planned case was measured." if rows else "The plan has no case."
        )
    return Subject(blocks=tuple(_blocks(failed, len(rows))))


def _blocks(failed: Sequence[Row], of: int) -> Iterator[Block]:
    same = by(failed, lambda row: tuple(row.get(name) or "" for name in SAME))
    order = list(STATUS_WORDS)
    ranked = sorted(same.values(), key=lambda rows: order.index(rows[0]["status"]))
    yield table_of(
        f"{plural(len(failed), 'case')} of {of} without a result, by status and reason",
        ranked[:MOST_GROUPS],
        {
            "status": lambda rows: STATUS_WORDS[rows[0]["status"]],
            "reason": lambda rows: rows[0].get("reason") or "",
            "cases": len,
            "backends": lambda rows: list_text(backends(rows)),
            "N": _lengths,
        },
    )
    if len(ranked) > MOST_GROUPS:
        yield note(f"{len(ranked) - MOST_GROUPS} more reasons are in the table of all rows.")
    logs = [row for row in failed if row.get("log_tail")]
    for row in logs[:MOST_LOGS]:
        tail = "\n".join(row["log_tail"].strip("\n").split("\n")[-LOG_LINES:])
        title = f"{visible(row['case'])} ({STATUS_WORDS[row['status']]}), the end of its log:"
        yield Text(text=f"{title}\n{COMMAND.sub('| ', tail)}", kind="log")
    if len(logs) > MOST_LOGS:
        yield note(f"{plural(len(logs) - MOST_LOGS, 'more log')} in the run's folder, under logs/.")


def _lengths(rows: Sequence[Row]) -> str:
    lengths = sorted({row["seq_len"] for row in rows if row.get("seq_len") is not None})
    if len(lengths) <= 6:
        return ", ".join(map(count_text, lengths))
    return f"{count_text(lengths[0])} to {count_text(lengths[-1])}"
