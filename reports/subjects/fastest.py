"""Which exact backend is fastest on each problem, with ties as ties; every latency over N."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...harness.stats.wide_intervals import says_nothing
from ..contrasts import against_one_head
from ..data.exactness import exactness_note, is_exact, meanings
from ..data.row_groups import (
    AXES,
    Group,
    Row,
    axis_text,
    axis_title,
    backends,
    by_environment,
    case_key,
    distinguishing_axes,
    groups,
    label,
    over_lengths,
    value_text,
    varying_axes,
)
from ..data.run_meta import Meta, caption
from ..elements import ASIDE, Block, Card, Figure, Marked, Table, caution, note, table_of
from ..formatting import (
    STATUS_WORDS,
    UNCERTAIN,
    in_brackets,
    length_text,
    list_text,
    number_text,
    plural,
    time_text,
)
from ..quantity import Number
from ..ratio import time_ratio
from . import Subject
from . import _trust as trust
from ._over import HOW_TIME, Line, by_backend, lines_over, n_text, not_drawn, panel
from ._race import Race, longest_race, race

TITLE = "Latency"
ORDER = 30
NEEDS = ("latency_ms", "latency_low_ms", "latency_high_ms")
MOST_FIGURES = 8
FEW_POINTS = 3  # over N: problems with as few are drawn as small multiples,
FEWEST_MULTIPLES = 3  # if there are so many of them
MOST_LINES = 3
USUAL_AXIS = "heads"
MOST_ROWS, MOST_COLUMNS, MOST_NAMES = 8, 8, 4
MOST_PROBLEMS = 40  # of the table of all
BY_TIME = "The fastest backend, its time, and the next one's as a multiple of it"
Raced = tuple[Group, Race]


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card names who is fastest; below are the latencies over N, and those of every problem."""
    rows = list(rows)
    timed = [row for row in rows if row["latency_ms"] is not None]
    over_n = [group for group in over_lengths(rows) if any(row in timed for row in group.rows)]
    card = _card(rows)
    told = card is not None and len(by_environment(rows)) == 1  # it is about one of them
    raced = [] if told else [group for group in groups(rows, "seq_len") if longest_race(group)]
    return Subject(
        card=card,
        lines=tuple(f"{_capital(finding(group))}." for group in raced[:MOST_LINES]),
        blocks=(
            *map(caution, trust.cautions(rows, meta)),
            *_figures(over_n[:MOST_FIGURES], meta),
            *not_drawn(over_n[MOST_FIGURES:]),
            *(_every_latency(rows) if timed else ()),
        ),
        lacking="No case has a latency.",
    )


# ---- what is said of a race ----------------------------------------------------------------------


def finding(group: Group) -> str:
    """One sentence on the longest N with something to compare."""
    found = longest_race(group)
    if found is None:
        timed = any(row.get("latency_ms") is not None for row in group.rows)
        return group.prefixed(f"no {'exact backend' if timed else 'case'} has a latency")
    n, fastest = found
    here = [row for row in group.rows if row["seq_len"] == n]
    where = ", ".join(filter(None, (n_text(n), group.label)))
    return _verdict(fastest, where, here) + _faster_inexact(fastest)


def _verdict(found: Race, where: str, rows: Sequence[Row]) -> str:
    """`at N = 2 048, h = 8: sdpa takes 14.6 ms, naive 3.26 times as long (3.24 to 3.28)`."""
    first = found.ranking[0]
    at = f"at {where}: " if where else ""
    text = f"{at}{first['backend']} takes {time_text(first['latency_ms'])}"
    if not found.margins:
        why = _alone(rows, found)
        return f"{text}, the {why}" if why else text
    other, margin = found.rival
    if found.clear:
        times = f"{number_text(margin.value)} times as long ({margin.bounds})"
        return f"{text}, {other['backend']} {times}{margin.beside}"
    names = list_text([row["backend"] for row in found.tied[1:]], MOST_NAMES)
    return f"{text}; {names} cannot be told apart from it ({margin.doubt})"


def _alone(rows: Sequence[Row], found: Race) -> str:
    """Why there is nothing to compare the only exact backend with; "" if nothing else was tried."""
    exact = "exact " if found.inexact else ""
    others = {row["status"] for row in rows if row["status"] != "ok"}
    if not others:
        return ""
    return f"only {exact}one that {'fits' if others <= {'oom', 'predicted_oom'} else 'ran'}"


def _faster_inexact(found: Race) -> str:
    """The fastest inexact backend of each kind that is clearly faster than every exact one."""
    kinds: dict[str, str] = {}
    for row in found.inexact:
        ratio = time_ratio(row, found.ranking[0])
        if ratio is not None and ratio.high < 1:
            first = found.ranking[0]["backend"]
            times = f"{number_text(ratio.value)} times as long as {first} ({ratio.bounds})"
            text = f"; {row['backend']} ({exactness_note(row)}) takes {times}"
            kinds.setdefault(row["exactness"], text)
    return "".join(kinds.values())


def _tally(races: Sequence[Race]) -> str:
    """`sdpa is fastest in 2 of 10 and 8 are ties`, of races with somebody to beat."""
    many = len(races)
    won = Counter(one.ranking[0]["backend"] for one in races if one.clear)
    ties = many - won.total()
    texts = [f"{name} is fastest in {count} of {many}" for name, count in won.most_common()]
    if ties == many:
        return f"{'both' if many == 2 else f'all {many}'} problems are ties"
    if ties:
        texts.append(f"{ties} {'are ties' if ties > 1 else 'is a tie'}")
    return list_text(texts)


# ---- the card ------------------------------------------------------------------------------------


def _card(rows: list[Row]) -> Card | None:
    raced = [(group, race(group.rows)) for group in groups(rows, None)]
    if not any(found.margins for _, found in raced):
        return None
    axis = _second_axis([group.problem for group, _ in raced])
    shown, which = _one_map(raced, axis)
    table, wide = _table(shown, axis, beside_heads=bool(against_one_head(rows)))
    inexact = [row for row in rows if row.get("exactness") not in (None, "exact")]
    left = len(raced) - len(shown)
    notes = [
        "Tie: not told apart, since the 95 % interval of the ratio to the fastest includes 1.",
        f"Not ranked: {'; '.join(meanings(inexact))}." if inexact else "",
        _disturbed([found for _, found in shown if found.clear]),
        f"{plural(left, 'more problem')} below." if left else "",
    ]
    return Card(
        name="fastest",
        title="Who is fastest",
        subtitle=f"time of a call{f', {which}' if which else ''}",
        sentence=_sentence([pair for pair in shown if pair[1].margins]),
        picture=table,
        note=" ".join(filter(None, notes)),
        wide=wide,
    )


_SIZES = ("seq_len", "kv_seq_len", "heads", "batch", "d_model")


def _sentence(contested: Sequence[Raced]) -> str:
    """The tally, and who wins the largest problem that two backends ran, by how much."""
    axes = varying_axes([group.problem for group, _ in contested])
    group, found = max(
        contested, key=lambda pair: tuple(pair[0].rows[0].get(axis) or 0 for axis in _SIZES)
    )
    others = label(group.problem, [axis for axis in AXES if axis in axes and axis != "seq_len"])
    n = group.problem["seq_len"]
    shown = n_text(n) if n != 1 or not others else ""  # as it is when tokens come one by one
    verdict = _verdict(found, ", ".join(filter(None, [shown, others])), group.rows)
    tally = f"{_capital(_tally([one for _, one in contested]))}. " if len(contested) > 1 else ""
    return f"{tally}{_capital(verdict)}."


def _capital(text: str) -> str:
    """Names of backends keep their case."""
    starts_with_word = text.startswith(("all ", "both ", "at ", "no "))
    return f"{text[0].upper()}{text[1:]}" if starts_with_word else text


def _disturbed(won: Sequence[Race]) -> str:
    """How many of the races that somebody won other work disturbed."""
    count = sum(any(margin.disturbed for margin in found.margins) for found in won)
    if not count:
        return ""
    return (
        f"Other work disturbed most blocks in {count} of the"
        f" {plural(len(won), 'problem')} that a backend is fastest in: measure again."
    )


def _second_axis(problems: Sequence[dict[str, Any]]) -> str:
    """The axis besides N with the most values; heads in a tie."""
    axes = (axis for axis in AXES if axis not in ("run", "seq_len"))
    counts = {axis: len({problem[axis] for problem in problems}) for axis in axes}
    most = max(counts, key=lambda axis: counts[axis])
    return USUAL_AXIS if counts[USUAL_AXIS] == counts[most] else most


def _one_map(raced: Sequence[Raced], axis: str) -> tuple[list[Raced], str]:
    """The problems that differ in N and this axis only, and what tells them from the others.

    All of them, if there are mostly problems that differ in more.
    """
    varying = varying_axes([group.problem for group, _ in raced])
    others = [other for other in varying if other not in ("seq_len", axis)]
    maps: dict[str, list[Raced]] = {}
    for pair in raced:
        if pair[1].ranking or any(row["status"] != "ok" for row in pair[0].rows):
            maps.setdefault(label(pair[0].problem, others), []).append(pair)
    best = max(maps, key=lambda which: sum(bool(one.margins) for _, one in maps[which]))
    if len(maps[best]) <= 2 < len(raced):
        return list(raced), ""
    return maps[best], best


def _table(shown: Sequence[Raced], axis: str, *, beside_heads: bool) -> tuple[Table, bool]:
    """And whether it wants the whole width."""
    cells = {(pair[0].problem["seq_len"], pair[0].problem[axis]): pair for pair in shown}
    if len(shown) == 1:
        return _ranking(*shown[0]), False
    lengths = sorted({n for n, _ in cells if n is not None})
    values = list(dict.fromkeys(value for _, value in cells))
    if len(cells) < len(shown) or 2 * len(cells) <= len(lengths) * len(values) > 2:
        return _list(shown), False  # problems differ in more than these two

    def value_title(value: Any) -> str:
        return value_text(axis, value) if axis_text(axis, value) else "none"

    def cell(n: int, value: Any) -> Marked | str:
        return _cell(*cells[n, value]) if (n, value) in cells else ""

    def of_length(n: int) -> Callable[[Any], Marked | str]:
        return lambda value: cell(n, value)

    def of_value(value: Any) -> Callable[[int], Marked | str]:
        return lambda n: cell(n, value)

    wide = len(lengths) > 2 and (beside_heads or len(values) > 2)
    if wide or len(lengths) < len(values):
        head = "Heads" if axis == "heads" else axis_title(axis)
        by_n = {n_text(n): of_length(n) for n in lengths[-MOST_COLUMNS:]}
        return table_of(BY_TIME, values[:MOST_ROWS], {head: value_title, **by_n}), wide
    by_value = {
        axis_text(axis, value) if len(values) > 1 else "fastest": of_value(value)
        for value in values[: MOST_COLUMNS // 2]
    }
    return table_of(BY_TIME, lengths[-MOST_ROWS:], {"N": length_text, **by_value}), wide


def _list(shown: Sequence[Raced]) -> Table:
    """A row per problem."""
    contested = [pair for pair in shown if pair[1].margins][:MOST_ROWS]
    axes = varying_axes([group.problem for group, _ in contested]) or ["seq_len"]
    return table_of(
        BY_TIME,
        contested,
        {
            "problem": lambda pair: label(pair[0].problem, axes),
            "fastest": lambda pair: _cell(*pair),
        },
    )


def _ranking(group: Group, found: Race) -> Table:
    """All backends of a single problem."""
    ratios = {
        row["case"]: f"×{number_text(margin.value)}{'' if margin.clear else ', tie'}"
        for row, margin in zip(found.ranking[1:], found.margins, strict=True)
    }
    failed = [row for row in group.rows if row["status"] != "ok"]
    return table_of(
        "Backends by time",
        [*found.ranking, *failed],
        {
            "backend": lambda row: row["backend"],
            "time": lambda row: Number(time_text(row["latency_ms"]) or STATUS_WORDS[row["status"]]),
            "times the fastest": lambda row: (
                "fastest" if row is found.ranking[0] else ratios.get(row["case"], "")
            ),
        },
        case=case_key,
    )


def _cell(group: Group, found: Race) -> Marked | str:
    """`tie: sdpa = naive 258 ms · then fused ×1.34`."""
    if not found.ranking:
        statuses = {row["status"] for row in group.rows}
        return STATUS_WORDS[statuses.pop()] if len(statuses) == 1 else "none ran"
    first, even = found.ranking[0], found.tied
    time, name = time_text(first["latency_ms"]), first["backend"]
    pairs = zip(found.ranking[1:], found.margins, strict=True)
    slower = [
        f"then {row['backend']} ×{number_text(margin.value)}"
        for row, margin in pairs
        if margin.clear
    ][:1]
    if not found.margins:
        text = ASIDE.join(filter(None, [f"{name} {time}", _alone(group.rows, found)]))
    elif not even:
        text = ASIDE.join([f"{name} {time}", *slower])
    else:
        names = " = ".join(row["backend"] for row in even[:MOST_NAMES])
        if len(even) == len(found.ranking) > 2:
            names = "all three" if len(even) == 3 else f"all {len(even)}"
        elif len(even) > MOST_NAMES:
            names += f" and {len(even) - MOST_NAMES} more"
        text = f"tie: {names}{ASIDE}{', '.join([time, *slower])}"
    return Marked(cell=text, case=case_key(first))


# ---- over N --------------------------------------------------------------------------------------


def _figures(over_n: Sequence[Group], meta: Meta) -> Iterator[Figure]:
    """A figure per problem; of problems with few points one, with a panel for each."""
    few = all(len(group.lengths) <= FEW_POINTS for group in over_n)
    if len(over_n) < FEWEST_MULTIPLES or not few:
        yield from (_figure([group], finding(group), meta) for group in over_n)
        return
    longest = [found[1] for group in over_n if (found := longest_race(group)) and found[1].margins]
    where = "At the longest N of each problem that two exact backends finished"
    yield _figure(over_n, f"{where}: {_tally(longest) if longest else 'none'}", meta)


def _figure(some: Sequence[Group], title: str, meta: Meta) -> Figure:
    first, *others = (caption(group.problem, meta).split(" · ") for group in some)
    common = " · ".join(part for part in first if all(part in other for other in others))
    missing = "; ".join(dict.fromkeys(text for group in some if (text := _missing(group.rows))))
    panels_text = f"A panel for each of {len(some)} problems. " if others else ""
    heads, lines = lines_over(some, "seq_len")
    races = _races(lines)
    return Figure(
        title=title,
        caption=common + (f". Without a point: {missing}" if missing else ""),
        description=f"{panels_text}Latency over the sequence length N, {HOW_TIME} every number.",
        panels=tuple(panel(group) for group in some),
        table=by_backend(
            "Latency, with half the width of its 95 % interval",
            heads,
            lines,
            lambda row, here: _with_width(row, races[id(here)]),
        ),
    )


def _missing(rows: Sequence[Row]) -> str:
    """Which backends have no point, and why: `naive (crashed); sdpa:flash (unsupported)`."""
    timed = backends(row for row in rows if row["latency_ms"] is not None)
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row["backend"] not in timed or (row["status"] == "ok" and row["latency_ms"] is None):
            why = "without a number" if row["status"] == "ok" else STATUS_WORDS[row["status"]]
            reasons.setdefault(row["backend"], []).append(why)
    return "; ".join(f"{name} ({', '.join(dict.fromkeys(why))})" for name, why in reasons.items())


def _races(lines: Sequence[Line]) -> dict[int, Race]:
    """By the identity of a line's rows: every cell asks for it."""
    return {id(rows): race(rows) for _, rows in lines}


def _with_width(row: Row, found: Race) -> Marked:
    """Strong if it wins."""
    low, high = row["latency_low_ms"], row["latency_high_ms"]
    half = f" ± {number_text(100 * ((high / low) ** 0.5 - 1))} %" if low and high else ""
    if half and says_nothing(low, high):
        half = in_brackets(UNCERTAIN)
    time = time_text(row["latency_ms"]) + half if row["latency_ms"] is not None else _no_time(row)
    return Marked(cell=Number(time), strong=found.clear and row is found.ranking[0])


def _no_time(row: Row) -> str:
    return STATUS_WORDS[row["status"]] if row["status"] != "ok" else "not timed"


# ---- every problem -------------------------------------------------------------------------------


def _every_latency(rows: list[Row]) -> Iterator[Block]:
    """The winner map: every latency as a multiple of the fastest, or why there is none."""
    problems = groups(rows, None)
    axes = distinguishing_axes(rows)
    inexact = [row for row in rows if not is_exact(row)]

    lines: list[Line] = [
        (tuple(value_text(axis, group.problem[axis]) for axis in axes), group.rows)
        for group in problems[:MOST_PROBLEMS]
    ]
    races = _races(lines)

    def cell(row: Row, here: Sequence[Row]) -> Marked:
        found = races[id(here)]
        return Marked(
            cell=beside(row, found),
            strong=found.clear and row is found.ranking[0],
            failed=row["status"] != "ok",
            case=case_key(row),
        )

    yield by_backend(
        "Who wins where: latency, and its ratio to the fastest; bold: faster by more than"
        f" noise{' than every other exact backend' if inexact else ''}; tie: not clearly slower"
        " than the fastest",
        [axis_title(axis) for axis in axes],
        lines,
        cell,
    )
    if inexact:
        yield note(f"Not ranked: {'; '.join(meanings(inexact))}.")
    if len(problems) > MOST_PROBLEMS:
        yield note(f"{len(problems) - MOST_PROBLEMS} more problems are in the table of all rows.")


def beside(row: Row, found: Race) -> str:
    """`58.7 ms · fastest`, `63.1 ms · ×1.08 · tie`, `out of memory`."""
    if row["latency_ms"] is None:
        return _no_time(row)
    text, ranked = time_text(row["latency_ms"]), found.ranking
    if not is_exact(row):
        ratio = time_ratio(row, ranked[0]) if ranked else None
        times = f" · ×{number_text(ratio.value)}" if ratio else ""
        return f"{text}{times} · {exactness_note(row)}"
    if not found.margins:
        return f"{text} · the only {'exact ' if found.inexact else ''}one"
    if row is ranked[0]:
        tie = " = ".join(one["backend"] for one in found.tied)
        return f"{text} · {'fastest' if found.clear else f'tie: {tie}'}"
    # the paired ratio, as the card and the verdict have it; that of the medians may be far off it
    pairs = zip(ranked[1:], found.margins, strict=True)
    margin = next(margin for other, margin in pairs if other["case"] == row["case"])
    return f"{text} · ×{number_text(margin.value)}{'' if margin.clear else ' · tie'}"
