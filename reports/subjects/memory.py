"""Where the bytes of a call are: inputs, output, temporaries; who needs the least; and whether all
counts agree.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ...harness.rows.readings import BELOW
from ..data.exactness import is_exact
from ..data.memory_need import clearly_outside_bytes
from ..data.row_groups import (
    Row,
    backends,
    case_key,
    distinguishing_axes,
    groups,
    label,
    over_lengths,
    problem,
)
from ..data.run_meta import Meta
from ..elements import Block, Card, Marked, Table, Text, note, table_of
from ..formatting import bytes_text, list_text, number_text, plural
from ..quantity import Cell, Quantity
from . import Subject
from ._memory_card import memory_card
from ._memory_over_n import disagreement, families, other_peaks
from ._over import by_backend
from .wall import asked

TITLE = "Memory of a call"
SECTION = "memory"
ORDER = 31
MOST_ROWS = 200
MOST_NARROW = 5  # columns of a card that is not as wide as the page
MOST_LINES = 8  # of the card
KEPT_RATIO = 0.05  # of the peak: less that is kept between calls is not worth a sentence
MISSING = {
    "peak_bytes": "the peak",
    "workspace_bytes": "what is kept between calls",
    "outside_bytes": "what torch does not count",
}
MEANING = {
    "formula": "the backend's closed formula",
    "resident": "the kernel's count of resident pages",
}


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    card = _card(rows, meta)
    ran = [row for row in rows if row["status"] == "ok"]
    measured = [row for row in ran if row.get("peak_bytes") is not None]
    if not measured:
        blocks = tuple(_kept(ran))
        return Subject(card=card, blocks=blocks, lacking="No case has measured peak bytes.")
    differing = sum(bool(disagreement(row)) for row in measured)
    cases = plural(differing, "case")
    lines = (f"The counts of peak bytes disagree on {cases}: see Memory of a call.",)
    return Subject(
        card=card,
        lines=lines if differing else (),
        blocks=(*_agreement(measured), *_kept(ran)),
    )


# ---- the card ------------------------------------------------------------------------------------


def _card(rows: Sequence[Row], meta: Meta) -> Card | None:
    """Memory over N where the question is another one; else who needs the least, if problems are
    shapes of their own, and nothing but backends is compared.
    """
    if found := families(rows):
        return None if asked(found[0], meta) else memory_card(found, meta)
    if over_lengths(rows) or any(run["scenario"].get("contrast") for run in meta.values()):
        return None
    by_problem = {
        group.label or label(group.problem, ["seq_len"]): known
        for group in groups(rows, None)
        if len(known := [row for row in group.rows if _is_counted(row)]) > 1
    }
    if len(by_problem) < 2:
        return None
    counts = Counter(
        row["backend"] for known in by_problem.values() for row in known if _is_least(row, known)
    )
    texts = [f"{name} in {count} of {len(by_problem)}" for name, count in counts.most_common()]
    winner = counts.most_common(1)[0][0]
    most = max(
        row["peak_bytes"] / base["peak_bytes"]
        for known in by_problem.values()
        for base in known
        for row in known
        if base["backend"] == winner
    )
    table = by_backend(
        "Peak bytes of a call; bold: the fewest",
        ("problem",),
        [((name,), known) for name, known in list(by_problem.items())[:MOST_LINES]],
        lambda row, known: Marked(
            cell=Quantity(row["peak_bytes"], "bytes"),
            strong=_is_least(row, known),
            case=case_key(row),
        ),
    )
    return Card(
        title="Who needs the least memory",
        sentence=(
            f"Of exact backends, {list_text(texts)} {'need' if len(texts) > 1 else 'needs'} the"
            f" fewest peak bytes; others need up to {number_text(most)} times those of {winner}."
        ),
        picture=table,
        wide=len(table.columns) > MOST_NARROW,
        subtitle="peak bytes of a call",
        note="Bytes are exact and have no interval; equal ones share the first place.",
    )


def _is_counted(row: Row) -> bool:
    return bool(row.get("latency_ms") is not None and row.get("peak_bytes") and is_exact(row))


def _is_least(row: Row, known: Sequence[Row]) -> bool:
    return bool(row["peak_bytes"] == min(other["peak_bytes"] for other in known))


# ---- details -------------------------------------------------------------------------------------


def _agreement(rows: list[Row]) -> Iterator[Block]:
    compared = [row for row in rows if other_peaks(row)]
    differing = [row for row in compared if disagreement(row)]
    made = [other for row in compared for other in other_peaks(row)]
    counts = {name: [one.agrees for one in made if one.name == name] for name in MEANING}
    texts = [
        f"with {MEANING[name]} in {sum(some)} of {plural(len(some), 'case')}"
        for name, some in counts.items()
        if some
    ]
    if texts:
        yield Text(text=f"The measured peak agrees {list_text(texts)}.")
    if alone := len(rows) - len(compared):
        have = "has" if alone == 1 else "have"
        yield note(f"{plural(alone, 'case')} {have} one count of the peak only.")
    if differing:
        yield _differing(differing)


def _kept(rows: list[Row]) -> Iterator[Block]:
    """What does not show in the peak of a call."""
    if found := _kept_finding(rows):
        yield Text(text=found)
    reasons: dict[str, list[Row]] = {}
    for row in rows:
        for name, reason in (row.get("memory_missing") or {}).items():
            if name == "outside_bytes" and reason.startswith(BELOW):
                continue  # as usual; the table says it
            reasons.setdefault(f"{MISSING.get(name, name)}: {reason}", []).append(row)
    for reason, found_rows in reasons.items():
        yield note(f"Not known for {list_text(backends(found_rows))}, {reason}.")


def _kept_finding(rows: list[Row]) -> str:
    """Who keeps most between calls, and who works outside torch's allocator; "" if nobody does.

    `Beside the peak of a call, keeps_scores keeps 32 MiB (16.0 times its peak) between calls at N =
    1k, and numpy takes 98 MiB outside torch's allocator at N = 1k: both count in comparisons.`
    """
    axes = distinguishing_axes(rows)
    parts = []
    for what, size_of in _BESIDE.items():
        for backend in backends(rows):
            mine = [row for row in rows if row["backend"] == backend and size_of(row)]
            if mine:
                row = max(reversed(mine), key=size_of)
                size, peak = size_of(row), row["peak_bytes"]
                times = f" ({number_text(size / peak)} times its peak)" if peak else ""
                where = label(problem(row), axes)
                at = f" at {where}" if where else ""
                parts.append(f"{backend} {what.format(bytes_text(size) + times)}{at}")
    if not parts:
        return ""
    return f"Beside the peak of a call, {list_text(parts)}. Comparisons of memory count it."


def _is_no_more_than_a_mask(row: Row) -> bool:
    """A backend may make a mask once, before its calls; it is no work of a call."""
    masked = row.get("causal") or row.get("mask") not in (None, "none")
    entries = row["batch"] if row.get("mask") == "padding" else 1
    kept = row.get("workspace_bytes") or 0
    return bool(masked and kept <= entries * row["seq_len"] * row["kv_seq_len"])


def _worth_telling(row: Row) -> int:
    kept: int = row.get("workspace_bytes") or 0
    told = kept >= KEPT_RATIO * (row.get("peak_bytes") or 0) and not _is_no_more_than_a_mask(row)
    return kept if kept and told else 0


_BESIDE = {
    "keeps {} between calls": _worth_telling,
    "takes {} outside torch's allocator": clearly_outside_bytes,
}


def _size(column: str) -> Callable[[Row], Cell]:
    return lambda row: Quantity(row.get(column), "bytes")


def _differing(rows: list[Row]) -> Table:
    axes = distinguishing_axes(rows)
    return table_of(
        "Peaks on which the counts disagree",
        [row for group in groups(rows, None) for row in group.rows],
        {
            "problem": lambda row: label(problem(row), axes),
            "backend": lambda row: row["backend"],
            "measured": _size("peak_bytes"),
            "formula": lambda row: Quantity(
                None if row.get("predicted_source") == "meta" else row.get("predicted_peak_bytes"),
                "bytes",
            ),
            "resident": _size("resident_peak_bytes"),
            "difference": disagreement,
        },
        case=case_key,
        most=MOST_ROWS,
    )
