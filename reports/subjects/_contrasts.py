"""How contrasts are told: in a sentence, as rows of a dot plot, and in a table."""

from collections.abc import Iterator, Sequence
from math import isfinite

from ..contrasts import Contrast, setting
from ..data.row_groups import Group, Row, axis_title, backends, case_key, label
from ..elements import Dot, DotPlot, DotRow, Table, table_of
from ..formatting import STATUS_WORDS, capital, list_text, number_text
from ..quantity import Cell, Number, Quantity
from ..words import SAME_RATIO, Word, word_of

MOST_NAMES = 4
Problems = Sequence[tuple[Group, Sequence[Contrast]]]
COUNTED = {"FLOPs": "work_flops", "softmax exponentials": "work_exps"}
SHARED = {"bytes of q, k and v": "input_bytes"}  # what shared keys and values save


def how_compared(base: str) -> str:
    return (
        f"Every ratio is to {base}, for the same backend on the otherwise equal problem. Times are"
        " paired block by block if both were measured in the same blocks (contrast), else marked"
        " as unpaired. One word says what an equivalence test decides: same within"
        f" {100 * SAME_RATIO:g} %, more, less, or undecided: times that cannot be told apart are"
        " not necessarily equal. Bytes, FLOPs and exponentials are counted."
    )


# ---- in a sentence -------------------------------------------------------------------------------


def sentence(some: Sequence[Contrast]) -> str:
    """`Same FLOPs, 8 times the softmax exponentials. Peak memory: ... Time: more for ...`, of one
    contrast per backend.
    """
    texts = []
    for nouns, column in (COUNTED | (SHARED if some[0].axis == "kv_heads" else {})).items():
        known = {ratio for one in some if isfinite(ratio := one.counted(column))}
        if len(known) == 1:
            ratio = known.pop()
            texts.append(f"same {nouns}" if ratio == 1 else f"{_times(ratio)} times the {nouns}")
    text = ", ".join(texts)
    parts = [f"{capital(text)}."] if text else []
    by_size: dict[str, list[str]] = {}
    sizes = {one.backend: one.peak_bytes for one in some if isfinite(one.peak_bytes)}
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        by_size.setdefault(_times(sizes[name]), []).append(name)
    if by_size:
        texts = [f"×{size} in {list_text(names, MOST_NAMES)}" for size, names in by_size.items()]
        parts.append(f"Peak memory: {list_text(texts, MOST_NAMES + 1)}.")
    by_word: dict[Word, list[tuple[float, str]]] = {}
    for one in some:
        if (found := one.same_time) is not None:
            by_word.setdefault(found.word, []).append((found.ratio.value, one.backend))
    order: tuple[Word, ...] = ("more", "less", "same", "undecided")
    clauses = [_clause(word, by_word[word], len(some)) for word in order if word in by_word]
    parts += [f"Time: {', '.join(clauses)}."] if clauses else []
    missing = dict.fromkeys(one.missing for one in some if one.missing)
    parts += [f"No time to compare: {list_text(list(missing))}."] if not clauses else []
    return " ".join(parts)


def _clause(word: Word, found: list[tuple[float, str]], every: int) -> str:
    ratios = dict.fromkeys(f"×{_times(ratio)}" for ratio, _ in (min(found), max(found)))
    names = [name for _, name in found]
    who = "all" if len(names) == every > 1 else list_text(names, MOST_NAMES)
    return f"{word} for {who} ({' to '.join(ratios)})"


def _times(ratio: float) -> str:
    if ratio == int(ratio):
        return str(int(ratio))
    return f"{ratio:.2f}" if ratio < 10 else number_text(ratio)


def why_undecided(some: Sequence[Contrast]) -> str:
    """`Undecided: the interval allows for ...`; "" if nothing is."""
    same = [one.same_time for one in some if one.same_time is not None]
    undecided = [one.ratio for one in same if one.word == "undecided"]
    noises = sorted({ratio.noise for ratio in undecided if ratio.noise})
    parts = [f"Undecided: the interval allows for {list_text(noises)}."] if noises else []
    if any(ratio.disturbed and not ratio.noise for ratio in undecided):
        parts.append("Undecided: other work disturbed most blocks.")
    return " ".join(parts)


# ---- in a picture --------------------------------------------------------------------------------


def counted_rows(some: Sequence[Contrast]) -> Iterator[DotRow]:
    """Counts: one row if they are the same for all backends."""
    for nouns, column in COUNTED.items():
        what = capital(nouns.removeprefix("softmax "))
        ratios = {one.backend: one.counted(column) for one in some if one.counted(column) > 0}
        if len(set(ratios.values())) == 1 and len(ratios) == len(some) > 1:
            every = "both" if len(ratios) == 2 else "all"
            ratios = {every: next(iter(ratios.values()))}
        for name, ratio in ratios.items():
            yield DotRow(group=what, label=name, dot=_counted(ratio), remark="counted")


def measured_rows(
    some: Sequence[Contrast], names: Sequence[str], place: str = ""
) -> Iterator[DotRow]:
    """Bytes and time of every backend; of one contrast per backend. `place`: of which problem."""
    by_name = {one.backend: one for one in some}
    dots = {
        ("Peak memory", "measured"): {one.backend: _counted(one.peak_bytes) for one in some},
        ("Time", "95 % interval"): {one.backend: _timed(one) for one in some},
    }
    for (what, remark), dot in dots.items():
        if any(dot.values()):
            for name in names:
                why = by_name[name].missing if what == "Time" and name in by_name else ""
                yield DotRow(
                    group=what,
                    label=name,
                    dot=dot.get(name),
                    missing="" if dot.get(name) else why or "no pair",
                    remark=place or remark,
                )


def _counted(ratio: float) -> Dot | None:
    known = isfinite(ratio) and ratio > 0
    return Dot(ratio=ratio, word=word_of(ratio, ratio)) if known else None


def _timed(one: Contrast) -> Dot | None:
    found = one.same_time
    if found is None:
        return None
    return Dot.of(found.ratio.value, found.ratio.low, found.ratio.high, found.word)


def dot_plot(rows: tuple[DotRow, ...], of: str, *, with_remarks: bool) -> DotPlot:
    """`of`: the ratios, `8 heads to one`. `with_remarks`: they tell rows apart."""

    def group(row: DotRow) -> str:
        return f"{row.group}, {row.remark}" if with_remarks and row.remark else row.group

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
                "of": group,
                "backend": lambda row: row.label,
                "ratio": lambda row: Quantity(row.dot.ratio if row.dot else None, "ratio"),
                "95 % interval": bounds,
                "in words": lambda row: row.dot.word if row.dot else row.missing,
            },
        ),
    )


# ---- in a table ----------------------------------------------------------------------------------

Line = tuple[Group, Row, Contrast | None]  # the base of a backend first, without a contrast


def lines(found: Problems) -> list[Line]:
    every: list[Line] = []
    for group, some in found:
        for name in backends(one.row for one in some):
            mine = [one for one in some if one.backend == name]
            every.append((group, mine[0].base, None))
            every += [(group, one.row, one) for one in mine]
    return every


def table(title: str, axis: str, shown: Sequence[Line], *, folded: bool) -> Table:
    def time(line: Line) -> Cell:
        row = line[1]
        known = row.get("latency_ms") is not None
        return Quantity(row["latency_ms"], "ms") if known else STATUS_WORDS[row["status"]]

    def ratio(line: Line) -> Cell:
        found = line[2].same_time if line[2] else None
        return Number(found.ratio.text) if found else ""

    def word(line: Line) -> str:
        found = line[2].same_time if line[2] else None
        return found.word if found else line[2].missing if line[2] else ""

    def counted(line: Line, column: str) -> Cell:
        return line[2].counted(column) if line[2] else ""

    return table_of(
        title,
        shown,
        {
            "problem": lambda line: line[0].label or label(line[0].problem, ["seq_len"]),
            "backend": lambda line: line[1]["backend"],
            axis_title(axis): lambda line: (
                line[1][axis] if axis == "heads" else setting(axis, line[1])
            ),
            "time": time,
            "time ratio": ratio,
            "in words": word,
            "peak bytes": lambda line: Quantity(line[1].get("peak_bytes"), "bytes"),
            "bytes ratio": lambda line: line[2].peak_bytes if line[2] else "",
            "inputs ratio": lambda line: counted(line, "input_bytes"),
            "FLOPs": lambda line: Quantity(line[1].get("work_flops"), "flops"),
            "FLOPs ratio": lambda line: counted(line, "work_flops"),
            "exponentials ratio": lambda line: counted(line, "work_exps"),
        },
        case=lambda line: case_key(line[1]),
        folded=folded,
    )
