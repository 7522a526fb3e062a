"""Where the bytes of a call are: inputs, output, temporaries; who needs the least; and whether all
counts agree.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ..analysis.memory import disagreement, kept_finding, kept_text, other_peaks
from ..analysis.memory_curves import families
from ..data.exactness import is_exact
from ..data.memory_need import clearly_outside_bytes
from ..data.row_groups import (
    Group,
    Row,
    axis_title,
    backends,
    case_key,
    distinguishing_axes,
    groups,
    label,
    over_lengths,
    value_text,
)
from ..data.run_meta import Meta
from ..elements import Block, Card, Table, Text, note
from ..formatting import bytes_text, list_text, number_text, plural
from . import Subject
from ._memory_over_n import memory_card
from ._race import race
from .wall import asked

TITLE = "Memory of a call"
ORDER = 31
NEEDS = ("peak_bytes", "output_bytes", "predicted_peak_bytes")
MOST_ROWS = 200
MOST_LINES = 8  # of the card
MISSING = {
    "peak_bytes": "the peak",
    "workspace_bytes": "what is kept between calls",
    "outside_bytes": "what torch does not count",
}
MEANING = {
    "formula": "the backend's closed formula",
    "meta": "the backend's own code run on the meta device",
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
    return Subject(card=card, lines=lines if differing else (), blocks=tuple(_details(measured)))


def _details(rows: list[Row]) -> Iterator[Block]:
    yield from _agreement(rows)
    yield from _kept(rows)
    split = [row for row in rows if row.get("output_bytes") is not None]
    if split:
        title = "Inputs exist before the call; output and temporaries make up its peak"
        cells = _SPLIT
        if any(row.get("workspace_bytes") is not None for row in split):
            title += "; what is kept between calls and what torch does not count come on top"
            cells = _SPLIT_KEPT
        yield _table(title, split[:MOST_ROWS], cells, folded=True)
    if len(split) > MOST_ROWS:
        yield note(f"The first {MOST_ROWS} of {len(split)} cases; attnbench export has them all.")


# ---- the card ------------------------------------------------------------------------------------


def _card(rows: Sequence[Row], meta: Meta) -> Card | None:
    """Memory over N where the question is another one; else who needs the least, if problems are
    shapes of their own, and nothing but backends is compared.
    """
    if found := families(rows):
        return None if asked(found[0], meta) else memory_card(found, meta, "memory")
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
        picture=_least_table(problems[:MOST_LINES], best),
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


def _least_table(problems: list[Group], best: list[list[str]]) -> Table:
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


# ---- details -------------------------------------------------------------------------------------


def _agreement(rows: list[Row]) -> Iterator[Block]:
    compared = [row for row in rows if other_peaks(row)]
    differing = [row for row in compared if disagreement(row)]
    if compared:
        methods = {other.name for row in compared for other in other_peaks(row)}
        names = ", ".join(text for name, text in MEANING.items() if name in methods)
        count = len(compared)
        agree = "the one case" if count == 1 else f"all {count} cases"
        if differing:
            agree = f"{count - len(differing)} of {plural(count, 'case')}"
        yield Text(text=f"In {agree} the measured peak agrees with every other count: {names}.")
    if alone := len(rows) - len(compared):
        have = "has" if alone == 1 else "have"
        yield note(f"{plural(alone, 'case')} {have} no second number to compare with.")
    if differing:
        title = "Peaks on which the counts disagree"
        yield _table(title, differing[:MOST_ROWS], _COMPARED, folded=False)


def _kept(rows: list[Row]) -> Iterator[Block]:
    """What does not show in the peak of a call."""
    if found := kept_finding(rows):
        yield Text(text=found)
    reasons: dict[str, list[Row]] = {}
    for row in rows:
        for name, reason in (row.get("memory_missing") or {}).items():
            reasons.setdefault(f"{MISSING.get(name, name)}: {reason}", []).append(row)
    for reason, found_rows in reasons.items():
        yield note(f"Not known for {list_text(backends(found_rows))}, {reason}.")


def _outside_text(row: Row) -> str:
    """With a word where it does not come on top."""
    size = row.get("outside_bytes")
    is_noise = size and not clearly_outside_bytes(row)
    return f"{bytes_text(size)}{' (noise)' if is_noise else ''}" or "not known"


_SPLIT: dict[str, Callable[[Row], str]] = {
    "inputs": lambda row: bytes_text(row.get("input_bytes")),
    "output": lambda row: bytes_text(row.get("output_bytes")),
    "temporaries": lambda row: bytes_text(row.get("temporary_bytes")),
    "peak": lambda row: bytes_text(row["peak_bytes"]),
    "minimal traffic": lambda row: bytes_text(row.get("minimal_bytes")),
}
_SPLIT_KEPT: dict[str, Callable[[Row], str]] = {
    **{name: cell for name, cell in _SPLIT.items() if name != "minimal traffic"},
    "inputs": lambda row: (
        bytes_text(row.get("input_bytes")) + (", with the mask" if row["mask"] == "random" else "")
    ),
    "kept between calls": kept_text,
    "outside torch": _outside_text,
    "peak, kept and outside": lambda row: bytes_text(row.get("needed_bytes")),
    "minimal traffic": lambda row: bytes_text(row.get("minimal_bytes")),
}
_COMPARED: dict[str, Callable[[Row], str]] = {
    "measured": lambda row: bytes_text(row["peak_bytes"]),
    "formula": lambda row: bytes_text(
        row.get("predicted_peak_bytes") if row.get("predicted_source") != "meta" else None
    ),
    "meta": lambda row: bytes_text(row.get("meta_peak_bytes")),
    "resident": lambda row: bytes_text(row.get("resident_peak_bytes")),
    "difference": disagreement,
}


def _table(
    title: str, rows: list[Row], cells: dict[str, Callable[[Row], str]], *, folded: bool
) -> Table:
    axes = distinguishing_axes(rows)
    lines = [
        (
            *(value_text(axis, group.problem[axis]) for axis in axes),
            row["backend"],
            *(cell(row) for cell in cells.values()),
        )
        for group in groups(rows, None)
        for row in group.rows
    ]
    return Table(
        title=title,
        columns=(*map(axis_title, axes), "backend", *cells),
        rows=tuple(lines),
        folded=folded,
    )
