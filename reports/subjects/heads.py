"""What h heads cost against one: FLOPs, exponentials, peak memory and time of otherwise equal
problems: a contrast whose base is one head.
"""

from collections.abc import Iterator, Sequence
from math import isfinite

from ..contrasts import (
    Contrast,
    against_one_head,
    asks_for,
    most_heads,
    of_given_width,
)
from ..data.row_groups import Group, Row, backends, case_key, label
from ..data.run_meta import Meta, caption
from ..elements import Card, Dot, DotPlot, DotRow, Figure, Panel, Series, Table, note
from ..formatting import (
    STATUS_WORDS,
    bytes_text,
    flops_text,
    length_text,
    list_text,
    number_text,
    time_text,
)
from ..words import SAME_RATIO, Word
from . import Subject
from ._dots import counted, dot_table, timed
from ._over import not_drawn

TITLE = "Cost of heads"
ORDER = 20
NEEDS = ("heads", "work_flops", "peak_bytes", "latency_ms")
MOST_FIGURES = 2
MOST_NAMES = 4
Problems = Sequence[tuple[Group, Sequence[Contrast]]]


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """No card where heads of a given width are removed: their contrast has its own."""
    every = against_one_head(rows)
    if not every:
        return Subject(
            lacking="There is nothing to compare: no backend was measured with one head and with"
            " more on an otherwise equal problem."
        )
    narrower = [
        (group, some)
        for group, some in every
        if not (of_given_width(group) and asks_for(meta[group.problem["run"]], "heads"))
    ]
    first: dict[tuple[str, str | None], tuple[Group, Sequence[Contrast]]] = {}
    for group, some in every:
        first.setdefault((group.problem["run"], group.problem["python"]), (group, some))
    others = [pair for pair in every if pair not in first.values()]
    drawn = [
        (group, some)
        for group, some in [*first.values(), *others][: max(MOST_FIGURES, len(first))]
        if len({one.heads for one in some}) > 1  # two points are no curve
    ]
    how = note(
        "Every ratio is to h = 1 of the same backend on the otherwise equal problem. Times are"
        " paired block by block if both were measured in the same blocks, else marked as unpaired."
        " Whether a time is the same is decided by an equivalence test with a margin of"
        f" {100 * SAME_RATIO:g} %: times that cannot be told apart are not necessarily equal."
    )
    left = [group for group, _ in every if group not in [group for group, _ in drawn]]
    return Subject(
        card=_card(narrower) if narrower else None,
        lines=tuple(  # the card is about one run in one environment
            f"For {group.at}: {headline(some)}." for group, some in first.values() if len(first) > 1
        ),
        blocks=(
            how,
            *(_figure(group, some, meta) for group, some in drawn),
            *(not_drawn(left, "; the table has them all") if drawn else ()),
            _table(sorted(every, key=lambda pair: pair[0].problem["seq_len"])),
        ),
    )


# ---- the card: one problem -----------------------------------------------------------------------


def _card(found: Problems) -> Card:
    group, heads, some = _common(found)
    same = {axis: value for axis, value in group.problem.items() if axis != "seq_len"}
    names = backends(
        one.row
        for other, every in found
        if {axis: other.problem[axis] for axis in same} == same
        for one in every
    )
    rows = tuple(_rows(some, names))
    at = f"N\u00a0=\u00a0{length_text(group.problem['seq_len'])}"
    others = [part for part in group.label.split(", ") if part and not part.startswith("N\u00a0=")]
    sentence = _sentence(some)
    return Card(
        name="heads",
        title=f"{heads} heads against one",
        subtitle=", ".join(("ratio", f"at {at}", *others)),
        sentence=sentence,
        picture=DotPlot(
            rows=rows,
            x_label=f"ratio of {heads} heads to one",
            band_ratio=SAME_RATIO,
            description=(
                f"Ratios of {heads} heads to one head at {at}, on one logarithmic axis with a band"
                f" of {100 * SAME_RATIO:g} % around 1. {sentence}"
            ),
            table=dot_table(f"{heads} heads over one head", rows, with_remarks=False),
        ),
        note=_note(at, some, names),
    )


def _common(found: Problems) -> tuple[Group, int, dict[str, Contrast]]:
    """The problem and the number of heads with the most comparisons, by backend.

    With equally many: the one with most heads, then the longest N.
    """
    choices = []
    for group, some in found:
        for heads in {one.heads for one in some}:
            known = {one.backend: one for one in some if one.heads == heads and one.is_known}
            choices.append((len(known), heads, group.problem["seq_len"] or 0, group, known))
    _, heads, _, group, known = max(choices, key=lambda choice: choice[:3])
    return group, heads, known


def _rows(some: dict[str, Contrast], names: Sequence[str]) -> Iterator[DotRow]:
    """Counts first: one row if they are the same for all backends."""
    for what, field in (("FLOPs", "work_flops"), ("Exponentials", "work_exps")):
        ratios = {name: getattr(one, field) for name, one in some.items()}
        known = [ratio for ratio in ratios.values() if isfinite(ratio)]
        if len(set(known)) == 1 and len(known) == len(some) > 1:
            yield _row(what, "both" if len(known) == 2 else "all", counted(known[0]), "counted")
        elif known:
            for name in some:
                yield _row(what, name, counted(ratios[name]), "counted")
    dots = {
        ("Peak memory", "measured"): {name: counted(one.peak_bytes) for name, one in some.items()},
        ("Time", "95 % interval"): {name: timed(one) for name, one in some.items()},
    }
    for (what, remark), by_name in dots.items():
        if any(by_name.values()):
            yield from (_row(what, name, by_name.get(name), remark) for name in names)


def _row(group: str, label: str, dot: Dot | None, remark: str) -> DotRow:
    missing = "" if dot is not None else "no pair"
    return DotRow(group=group, label=label, dot=dot, missing=missing, remark=remark)


def _sentence(some: dict[str, Contrast]) -> str:
    """`Same FLOPs, 8 times the softmax exponentials. Peak memory: ... Time: more for ...`"""
    parts = [_counts(some)]
    by_size: dict[str, list[str]] = {}
    sizes = {name: one.peak_bytes for name, one in some.items() if isfinite(one.peak_bytes)}
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        by_size.setdefault(_times(sizes[name]), []).append(name)
    if by_size:
        texts = [f"×{ratio} in {_names(names)}" for ratio, names in by_size.items()]
        more = f" and {len(texts) - MOST_NAMES} more" if len(texts) > MOST_NAMES else ""
        parts.append(f"Peak memory: {list_text(texts[:MOST_NAMES])}{more}.")
    by_word: dict[Word, list[tuple[float, str]]] = {}
    for name, one in some.items():
        if (found := one.same_time) is not None:
            by_word.setdefault(found.word, []).append((found.value, name))
    order: tuple[Word, ...] = ("more", "less", "same", "undecided")
    clauses = [_clause(word, by_word[word], len(some)) for word in order if word in by_word]
    parts += [f"Time: {', '.join(clauses)}."] if clauses else []
    return " ".join(filter(None, parts))


def _counts(some: dict[str, Contrast]) -> str:
    """`Same FLOPs, 8 times the exponentials of the softmax.`"""
    texts = []
    for field, nouns in (("work_flops", "FLOPs"), ("work_exps", "softmax exponentials")):
        known = {ratio for one in some.values() if isfinite(ratio := getattr(one, field))}
        if len(known) == 1:
            ratio = known.pop()
            texts.append(f"same {nouns}" if ratio == 1 else f"{_times(ratio)} times the {nouns}")
    text = ", ".join(texts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _clause(word: Word, found: list[tuple[float, str]], every: int) -> str:
    low, high = min(found)[0], max(found)[0]
    ratios = f"×{_times(low)}" if len(found) == 1 else f"×{_times(low)} to ×{_times(high)}"
    names = [name for _, name in found]
    return f"{word} for {'all' if len(names) == every > 1 else _names(names)} ({ratios})"


def _names(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMES:
        return list_text(names)
    return f"{', '.join(names[: MOST_NAMES - 1])} and {len(names) - MOST_NAMES + 1} more"


def _times(ratio: float) -> str:
    if ratio == int(ratio):
        return str(int(ratio))
    return f"{ratio:.2f}" if ratio < 10 else number_text(ratio)


def _note(at: str, some: dict[str, Contrast], names: Sequence[str]) -> str:
    parts = []
    if len(some) == len(names) > 1:
        words = {2: "both", 3: "all three", 4: "all four", 5: "all five", 6: "all six"}
        every = words.get(len(names), f"all {len(names)}")
        parts.append(f"{at} is the longest at which {every} ran with both.")
    parts.append(f"Grey: ±\u00a0{100 * SAME_RATIO:g}\u00a0%, “same”.")
    undecided = [
        found.ratio
        for one in some.values()
        if (found := one.same_time) and found.word == "undecided"
    ]
    if noises := sorted({ratio.noise for ratio in undecided if ratio.noise}):
        parts.append(f"Undecided: the interval allows for {list_text(noises)}.")
    if any(ratio.disturbed and not ratio.noise for ratio in undecided):
        parts.append("Undecided: other work disturbed most blocks.")
    return " ".join(parts)


# ---- over h --------------------------------------------------------------------------------------


def _figure(group: Group, some: Sequence[Contrast], meta: Meta) -> Figure:
    drawn = [one.backend for one in most_heads(some)]
    left = sorted({one.backend for one in some} - set(drawn))
    return Figure(
        title=group.prefixed(headline(some)),
        caption=caption(group.problem, meta)
        + (f". Without a point: {', '.join(left)}" if left else ""),
        description=(
            "Time and peak bytes over the number of heads h, each as a ratio to one head of the"
            " same backend, both axes logarithmic, one line per backend. The dotted line is 1: more"
            " heads for free. A cross at the upper edge of the time marks a failed case. The table"
            " below has every number."
        ),
        panels=tuple(
            Panel(
                x_label="heads h",
                y_label=f"{what}, ratio to h = 1",
                unit="times",
                series=tuple(
                    series
                    for name in drawn
                    for series in _series([one for one in some if one.backend == name], what)
                ),
                line=(1, ""),
            )
            for what in ("time", "peak bytes")
        ),
        table=_table([(group, some)]),
    )


def _series(mine: Sequence[Contrast], what: str) -> Iterator[Series]:
    """Of one backend: ratios from one head on, and failed cases in the panel of times."""
    backend, base = mine[0].backend, mine[0].base
    is_time = what == "time"
    start = base.get("latency_ms" if is_time else "peak_bytes")
    points: list[tuple[int, float, float | None, float | None, str]] = []
    if start is not None:
        points.append((1, 1.0, None, None, case_key(base)))
    for one in mine:
        if is_time and one.time is not None:
            time = one.time
            points.append((one.heads, time.value, time.low, time.high, case_key(one.row)))
        elif not is_time and isfinite(one.peak_bytes):
            points.append((one.heads, one.peak_bytes, None, None, case_key(one.row)))
    if len(points) > 1:
        x, y, low, high, cases = zip(*points, strict=True)
        yield Series(backend=backend, kind="measured", x=x, y=y, low=low, high=high, cases=cases)
    rows = [base, *(one.row for one in mine)]
    if failed := [row for row in rows if is_time and row["status"] != "ok"]:
        yield Series(
            backend=backend,
            kind="failed",
            x=tuple(row["heads"] for row in failed),
            y=(None,) * len(failed),
            cases=tuple(map(case_key, failed)),
        )


def headline(some: Sequence[Contrast]) -> str:
    """Time and bytes of each backend with its most heads."""
    texts = []
    for one in most_heads(some):
        time = f"{number_text(one.time.value)} times the time" if one.time else "no time"
        size = "bytes not measured"
        if isfinite(one.peak_bytes):
            ratio = one.peak_bytes
            size = f"{'the same' if ratio == 1 else f'{number_text(ratio)} times the'} bytes"
        texts.append((one.heads, f"{one.backend} {time}, {size}"))
    most = max(heads for heads, _ in texts)
    return f"{most} heads against one: " + "; ".join(
        text if heads == most else f"{text} (h = {heads})" for heads, text in texts
    )


def _table(every: Problems) -> Table:
    lines = [
        (group, row, one)
        for group, some in every
        for name in backends(one.row for one in some)
        for mine in [[one for one in some if one.backend == name]]
        for row, one in [(mine[0].base, None), *((one.row, one) for one in mine)]
    ]
    return Table(
        title="Time, peak bytes and FLOPs against one head",
        columns=(
            *("problem", "backend", "h", "time", "time / h = 1", "in words"),
            *("peak bytes", "bytes / h = 1", "FLOPs", "FLOPs / h = 1"),
        ),
        rows=tuple(_cells(group, row, one) for group, row, one in lines),
        cases={(line, 1): case_key(row) for line, (_, row, _) in enumerate(lines)},
        folded=True,
    )


def _cells(group: Group, row: Row, one: Contrast | None) -> tuple[str, ...]:
    found = one.same_time if one else None
    return (
        group.label or label(group.problem, ["seq_len"]),
        row["backend"],
        str(row["heads"]),
        time_text(row.get("latency_ms")) or STATUS_WORDS[row["status"]],
        found.ratio.text if found else "",
        found.word if found else "",
        bytes_text(row.get("peak_bytes")),
        number_text(one.peak_bytes) if one else "",
        flops_text(row.get("work_flops")),
        number_text(one.work_flops) if one else "",
    )
