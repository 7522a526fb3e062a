"""How the run went: cases by how they ended, and what makes their times doubtful."""

from collections import Counter
from collections.abc import Sequence

from ..data.row_groups import COPY, Row
from ..data.run_meta import Meta
from ..elements import caution, note
from ..formatting import STATUS_WORDS, plural
from . import Subject
from . import _trust as trust

TITLE = "Summary"
ORDER = 0
NEEDS = ("status", "latency_ms")
ALL_COPIES = True
ABOUT = ("cases", "kernels")


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    if not rows:
        return Subject(lacking="The plan has no case.")
    first = [row for row in rows if (row.get(COPY) or 1) == 1]
    doubts = (*trust.warnings(first), *trust.interpreted(first, meta))
    more = plural(len(rows), "case")
    copies = [note(f"With all copies, {more}; other sections show the first.")]
    return Subject(
        blocks=(
            *map(caution, doubts),
            note(_tally(first)),
            *map(note, trust.process_notes(first)),
            *(copies if len(first) < len(rows) else ()),
        )
    )


def _tally(rows: Sequence[Row]) -> str:
    counts = Counter(row["status"] for row in rows)
    texts = [f"{count} {STATUS_WORDS[status]}" for status, count in counts.most_common()]
    # A note may have several parts; each is shown once.
    notes = sorted(
        {note for row in rows for note in (row.get("latency_note") or "").split("; ") if note},
        reverse=True,
    )
    limits = f" ({'; '.join(notes)})" if notes else ""
    return f"{plural(len(rows), 'case')}: {'; '.join(texts)}. Intervals are at 95 %{limits}."
