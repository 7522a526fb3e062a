"""How contrasts are told: on a card, in a sentence, as rows of a dot plot, and in a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from ..contrasts import NAMES, WHOLE_STEP, Contrast, setting
from ..data.processor_time import time_of
from ..data.row_groups import (
    Group,
    Row,
    axis_title,
    backends,
    by,
    case_key,
    label,
    varying_axes,
)
from ..data.run_meta import Meta
from ..deciding import what_decides_ratios
from ..elements import Card, Dot, DotPlot, DotRow, Figure, Table, table_of
from ..formatting import STATUS_WORDS, capital, list_text, number_text, paragraph, plural
from ..judging.ratio import Ratio, exact_ratio
from ..quantity import Cell, Number, Quantity
from ..words import MARKS, NOISY, SAME, SAME_RATIO, SEEN

MOST_NAMES = 4
LENGTHS = ("seq_len", "kv_seq_len")
SIZES = (*LENGTHS, "batch", "d_model")  # sentences are about the largest
Problems = Sequence[tuple[Group, Sequence[Contrast]]]
THROUGHPUT = "Tokens per second"
BAND = f"Grey: ±\u00a0{100 * SAME_RATIO:g}\u00a0%, “same”."
TWO_KERNELS = "compares kernels"
EXACT = "Bytes and FLOPs are exact."
FLOPS = {"FLOPs": "work_flops"}
SHARED = {"bytes of q, k and v": "input_bytes"}  # what shared keys and values save


def how_compared(base: str) -> str:
    return (
        f"Ratios are to {base}, for the same backend on the otherwise equal problem. An equivalence"
        f" test of the times decides: same within {100 * SAME_RATIO:g} %, more or less; else they"
        " are not confirmed, which does not mean equal. Bytes and FLOPs are counted."
    )


# ---- which ones, and their card ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """What a sentence and a card are about: one setting on one problem, of every backend.

    `at`: its lengths, and sizes and scopes that others do not have: ` at N = 1k, in the layer`.
    """

    at: str
    every: Sequence[Contrast]

    @property
    def answer(self) -> str:
        """`forward+backward against forward at N = 1k: Same FLOPs. ...`"""
        return capital(f"{self.every[0].against}{self.at}: {self.finding}")

    @property
    def finding(self) -> str:
        """`Same FLOPs. Peak memory: ×2 in fused. Time: more for all (×2.99 to ×3.03).`"""
        text, first = sentence(self.every), self.every[0]
        if first.axis == "heads" and first.row["d_k"] == first.base["d_k"]:  # heads were removed
            ratio = number_text(first.row["heads"] / first.base["heads"])
            text += f" In proportion to the heads it would be ×{ratio}."
        return text


def pick(problems: Problems, among: Problems = ()) -> Picked:
    """Whole steps on which most backends have both settings, the setting furthest from the base,
    then the largest sizes. Problems without a time count only if none has one. `among`: further
    problems, from which the words tell it.
    """
    found = [
        (group, [one for one in some if setting(one.axis, one.row) == shown])
        for group, some in problems
        for shown in dict.fromkeys(setting(one.axis, one.row) for one in some)
    ]

    def rank(pair: tuple[Group, Sequence[Contrast]]) -> tuple[float, ...]:
        group, some = pair
        sizes = (group.problem.get(axis) for axis in SIZES)
        return (
            any(one.time for one in some),
            group.problem.get("passes") == WHOLE_STEP,
            sum(one.is_known for one in some),
            max(one.distance for one in some),
            *(size if isinstance(size, int) else 0 for size in sizes),
        )

    group, some = max(found, key=rank)
    axes = varying_axes([group.problem for group, _ in among or problems])
    named = dict.fromkeys((*LENGTHS, *(axis for axis in axes if axis != "run")))
    values = {axis: group.problem.get(axis) for axis in named}
    texts = [
        f"in {NAMES['scope'][str(value)]}" if axis == "scope" else setting(axis, {axis: value})
        for axis, value in values.items()
        if axis not in LENGTHS or (isinstance(value, int) and value > 1)
    ]
    text = ", ".join(filter(None, texts))
    return Picked(at=f" at {text}" if text else "", every=some)


def card(
    title: str, picked: Picked, problems: Problems, meta: Meta, curve: Figure | None = None
) -> Card:
    """`problems`: those of the run of which one was picked. Without a title that of what is
    compared. `curve`: in place of dots.
    """
    rows = [row for group, _ in problems for row in group.rows]
    run, left = rows[0]["run"], len(problems) - 1
    first, every = picked.every[0], [one for one in picked.every if one.of_heads]
    paired = all(one.time.paired for one in every if one.time is not None)
    is_more = plural(left, "more problem is", "more problems are")
    to = f" to {setting(first.axis, first.base)}" if title else ""
    notes = (
        "Times are paired block by block." if paired else "Some times are unpaired.",
        "" if curve else BAND,
        f"{is_more} below." if left else "",
    )
    return Card(
        title=title or capital(first.against),
        sentence=picked.answer if title else picked.finding,
        about="" if title else f"{capital(first.against)}{picked.at}",
        picture=curve or _dot_plot(picked),
        subtitle=f"ratios{to}{picked.at}{f', {run}' if len(meta) > 1 else ''}",
        sure=paragraph(
            _how_sure(every),
            what_decides_ratios(filter(None, (one.time for one in every)), rows, {run: meta[run]}),
        ),
        note=" ".join(filter(None, notes)),
        wide=curve is not None,
    )


def _how_sure(every: Sequence[Contrast]) -> str:
    """`Time: confirmed for naive and sdpa; too noisy for fused. Bytes and FLOPs are exact.`"""
    times = [(one.backend, one.time) for one in every if one.time]
    by_mark = by(times, lambda one: one[1].mark)
    texts = [
        f"{mark.words} for {list_text([name for name, _ in by_mark[mark]], MOST_NAMES)}"
        for mark in MARKS
        if mark in by_mark
    ]
    noises = {time.noise for _, time in times if time.mark in (SEEN, NOISY)} - {""}
    allowed = f", which allows for {list_text(sorted(noises))}" if noises else ""
    return paragraph(f"Time: {'; '.join(texts)}{allowed}." * bool(texts), EXACT)


# ---- in a sentence -------------------------------------------------------------------------------


def sentence(some: Sequence[Contrast]) -> str:
    """`Same FLOPs. Peak memory: ... Time: more for ...`, of one contrast per backend."""
    texts = []
    for nouns, column in (FLOPS | (SHARED if some[0].axis == "kv_heads" else {})).items():
        known = {ratio for one in some if isfinite(ratio := one.counted(column))}
        if len(known) == 1:
            ratio = known.pop()
            texts.append(f"same {nouns}" if ratio == 1 else f"{_times(ratio)} times the {nouns}")
    text = ", ".join(texts)
    parts = [f"{capital(text)}."] if text else []
    told = [one for one in some if one.of_heads]
    sizes = {one.backend: one.peak_bytes for one in told if isfinite(one.peak_bytes)}
    ordered = sorted(sizes, key=lambda name: -sizes[name])
    if by_size := by(ordered, lambda name: _times(sizes[name])):
        texts = [f"×{size} in {list_text(names, MOST_NAMES)}" for size, names in by_size.items()]
        parts.append(f"Peak memory: {list_text(texts, MOST_NAMES + 1)}.")
    parts += _said("Time", [(one.backend, one.time) for one in told], len(some))
    parts += _said(THROUGHPUT, [(one.backend, one.throughput) for one in told], len(some))
    parts += [f"{one.kernels}." for one in some if one.kernels]
    missing = dict.fromkeys(one.missing for one in some if one.missing)
    timed = any(one.time for one in some)
    parts += [] if timed else [f"No time to compare: {list_text(list(missing))}."]
    return " ".join(parts)


def _said(what: str, found: Sequence[tuple[str, Ratio | None]], every: int) -> list[str]:
    """`Time: more for all (×2.99 to ×3.03).`, by backend; [] without a ratio."""
    known = ((ratio.said, ratio.value, backend) for backend, ratio in found if ratio is not None)
    by_word = by(known, lambda one: one[0])
    order = ("more", "less", SAME.words, SEEN.words, NOISY.words)
    clauses = [_clause(word, by_word[word], every) for word in order if word in by_word]
    return [f"{what}: {', '.join(clauses)}."] if clauses else []


def _clause(word: str, found: Sequence[tuple[str, float, str]], every: int) -> str:
    ratios = dict.fromkeys(f"×{_times(ratio)}" for _, ratio, _ in (min(found), max(found)))
    names = [name for _, _, name in found]
    who = "all" if len(names) == every > 1 else list_text(names, MOST_NAMES)
    return f"{word} for {who} ({' to '.join(ratios)})"


def _times(ratio: float) -> str:
    if ratio == int(ratio):
        return str(int(ratio))
    return f"{ratio:.2f}" if ratio < 10 else number_text(ratio)


# ---- in a picture --------------------------------------------------------------------------------


def _dot_rows(some: Sequence[Contrast], names: Sequence[str]) -> Iterator[DotRow]:
    """FLOPs, one row if all are the same; bytes and time of every backend."""
    found = ((one.backend, one.counted("work_flops")) for one in some)
    flops = {name: ratio for name, ratio in found if ratio > 0}
    if len(set(flops.values())) == 1 and len(flops) > 1:
        flops = {"both" if len(flops) == 2 else "all": next(iter(flops.values()))}
    for name, ratio in flops.items():
        yield DotRow(group="FLOPs", label=name, dot=_counted(ratio), remark="counted")
    by_name = {one.backend: one for one in some}
    some = [one for one in some if one.of_heads]
    dots = {
        ("Peak memory", "measured"): {one.backend: _counted(one.peak_bytes) for one in some},
        ("Time", "95 % interval"): {one.backend: _timed(one.time) for one in some},
        (THROUGHPUT, "95 % interval"): {one.backend: _timed(one.throughput) for one in some},
    }
    for (what, remark), dot in dots.items():
        for name in names if any(dot.values()) else ():
            why = by_name[name].missing if what == "Time" and name in by_name else ""
            why = TWO_KERNELS if name in by_name and not by_name[name].of_heads else why
            yield DotRow(
                group=what,
                label=name,
                dot=dot.get(name),
                missing="" if dot.get(name) else why or "no pair",
                remark=remark,
            )


def _counted(ratio: float) -> Dot | None:
    known = isfinite(ratio) and ratio > 0
    return Dot(ratio=ratio, word=exact_ratio(ratio, 1.0, SAME_RATIO).word) if known else None


def _timed(found: Ratio | None) -> Dot | None:
    if found is None:
        return None
    return Dot.of(found.value, found.low, found.high, found.word, found.mark)


def _dot_plot(picked: Picked) -> DotPlot:
    of, names = picked.every[0].against, backends(one.row for one in picked.every)
    rows = tuple(_dot_rows(picked.every, names))

    def bounds(row: DotRow) -> str:
        dot = row.dot
        return Quantity(dot.ratio, "ratio", dot.low, dot.high).bounds if dot else ""

    return DotPlot(
        rows=rows,
        x_label=f"ratio, {of}",
        band_ratio=SAME_RATIO,
        table=table_of(
            f"Ratios, {of}",
            rows,
            {
                "of": lambda row: row.group,
                "backend": lambda row: row.label,
                "ratio": lambda row: Quantity(row.dot.ratio if row.dot else None, "ratio"),
                "95 % interval": bounds,
                "in words": lambda row: row.dot.said if row.dot else row.missing,
            },
        ),
    )


# ---- in a table ----------------------------------------------------------------------------------


def table(
    title: str, axis: str, found: Problems, *, folded: bool = False, most: int | None = None
) -> Table:
    """A row per contrast, by problem and backend."""
    shown = [(group, one) for group, some in found for one in some]

    def side(row: Row) -> Cell:
        return row[axis] if axis == "heads" else setting(axis, row)

    def time(row: Row) -> Cell:
        return time_of(row) if row.get("latency_ms") is not None else STATUS_WORDS[row["status"]]

    def ratio(one: Contrast) -> Cell:
        return TWO_KERNELS if not one.of_heads else one.time.marked if one.time else ""

    return table_of(
        title,
        shown,
        {
            "problem": lambda of: of[0].label or label(of[0].problem, ["seq_len"]),
            "backend": lambda of: of[1].backend,
            axis_title(axis): lambda of: side(of[1].row),
            "against": lambda of: side(of[1].base),
            "time": lambda of: time(of[1].row),
            "of base": lambda of: time(of[1].base),
            "time ratio": lambda of: ratio(of[1]),
            "tokens ratio": lambda of: Number(of[1].throughput.text) if of[1].throughput else "",
            "bytes ratio": lambda of: of[1].peak_bytes,
            "FLOPs ratio": lambda of: of[1].counted("work_flops"),
        },
        case=lambda of: case_key(of[1].row),
        optional=("tokens ratio",),
        folded=folded,
        most=most,
    )
