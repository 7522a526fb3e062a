"""What h heads cost against one: FLOPs, exponentials, peak memory and time, at one common N."""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Literal

import pandas as pd

from ..analysis.contrasts import asks_for, of_given_width
from ..analysis.heads import MARGIN_RATIO, HeadCost, comparable, same_time
from ..data.row_groups import Group, records
from ..data.run_meta import Meta
from ..elements import Card, Dot, DotPlot, DotRow, Table
from ..formatting import length_text, list_text, number_text, ratio_bounds_text

ORDER = 20
Word = Literal["same", "more", "less", "undecided"]
COUNTED = {"FLOPs": "flops", "Exponentials": "exps"}
MOST_NAMES = 4


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    """None where heads of a given width are removed: their contrast has its own card."""
    found = [
        pair
        for pair in comparable(records(frame))
        if not (of_given_width(pair[0]) and asks_for(meta[pair[0].problem["run"]], "heads"))
    ]
    if not found:
        return None
    group, heads, costs = _common(found)
    names = list(dict.fromkeys(cost.backend for cost in _every(found, group)))
    rows = tuple(_rows(costs, names))
    n = group.problem["seq_len"]
    at = f"N\u00a0=\u00a0{length_text(n)}"
    which = _problem_text(group)
    return Card(
        name="heads",
        title=f"{heads} heads against one",
        subtitle=f"ratio, at {at}{f', {which}' if which else ''}",
        sentence=_sentence(costs),
        picture=DotPlot(
            rows=rows,
            x_label=f"ratio of {heads} heads to one",
            band_ratio=MARGIN_RATIO,
            description=(
                f"Ratios of {heads} heads to one head at {at}, on one logarithmic axis with a band"
                f" of {100 * MARGIN_RATIO:g} % around 1. {_sentence(costs)}"
            ),
            table=_table(rows, heads),
        ),
        note=_note(at, costs, names),
    )


def _every(found: Sequence[tuple[Group, list[HeadCost]]], of: Group) -> Iterator[HeadCost]:
    """The comparisons on all problems that differ from this one in N only."""
    same = {axis: value for axis, value in of.problem.items() if axis != "seq_len"}
    for group, costs in found:
        if {axis: group.problem[axis] for axis in same} == same:
            yield from costs


def _common(
    found: Sequence[tuple[Group, list[HeadCost]]],
) -> tuple[Group, int, dict[str, HeadCost]]:
    """The problem and the number of heads with the most comparisons, by backend.

    With equally many: the one with most heads, then the longest N.
    """
    choices = []
    for group, costs in found:
        for heads in {cost.heads for cost in costs if cost.heads > 1}:
            known = {
                cost.backend: cost for cost in costs if cost.heads == heads and _is_known(cost)
            }
            choices.append((len(known), heads, group.problem["seq_len"] or 0, group, known))
    *_, group, known = max(choices, key=lambda choice: choice[:3])
    return group, next(iter(known.values())).heads, known


def _is_known(cost: HeadCost) -> bool:
    return cost.time is not None or isfinite(cost.peak_bytes)


def _problem_text(group: Group) -> str:
    """What tells the problem from the others, without N."""
    parts = group.label.split(", ")
    return ", ".join(part for part in parts if part and not part.startswith("N\u00a0="))


# ---- rows ----------------------------------------------------------------------------------------


def _rows(costs: dict[str, HeadCost], names: Sequence[str]) -> Iterator[DotRow]:
    """Counts first: one row if they are the same for all backends."""
    for what, field in COUNTED.items():
        ratios = {name: getattr(cost, field) for name, cost in costs.items()}
        known = {name: ratio for name, ratio in ratios.items() if isfinite(ratio)}
        if len(set(known.values())) == 1 and len(known) == len(costs) > 1:
            label = "both" if len(known) == 2 else "all"
            yield _row(what, label, _counted(next(iter(known.values()))), "counted")
        elif known:
            for name in costs:
                yield _row(what, name, _counted(ratios[name]), "counted")
    if any(isfinite(cost.peak_bytes) for cost in costs.values()):
        for name in names:
            dot = _counted(costs[name].peak_bytes) if name in costs else None
            yield _row("Peak memory", name, dot, "measured")
    if any(cost.time for cost in costs.values()):
        for name in names:
            yield _row(
                "Time", name, _timed(costs[name]) if name in costs else None, "95 % interval"
            )


def _row(group: str, label: str, dot: Dot | None, remark: str) -> DotRow:
    missing = "" if dot is not None else "no pair"
    return DotRow(group=group, label=label, dot=dot, missing=missing, remark=remark)


def _counted(ratio: float) -> Dot | None:
    if not isfinite(ratio) or ratio <= 0:
        return None
    same = 1 / (1 + MARGIN_RATIO) <= ratio <= 1 + MARGIN_RATIO
    return Dot(ratio=ratio, word="same" if same else "more" if ratio > 1 else "less")


def _timed(cost: HeadCost) -> Dot | None:
    """The verdict of the heads section: an equivalence test, wider for what was not measured."""
    found = same_time(cost)
    if found is None:
        return None
    words: dict[str, Word] = {"yes": "same", "undecided": "undecided"}
    words["no"] = "more" if found.value > 1 else "less"
    known = isfinite(found.low) and isfinite(found.high)
    return Dot(
        ratio=found.value,
        low=found.low if known else None,
        high=found.high if known else None,
        word=words[found.answer],
    )


def _table(rows: Sequence[DotRow], heads: int) -> Table:
    return Table(
        title=f"{heads} heads over one head",
        columns=("cost", "backend", "ratio", "95 % interval", "in words"),
        rows=tuple(
            (row.group, row.label, number_text(row.dot.ratio), _interval(row.dot), row.dot.word)
            if row.dot is not None
            else (row.group, row.label, "", "", row.missing)
            for row in rows
        ),
    )


def _interval(dot: Dot) -> str:
    return ratio_bounds_text(dot.low, dot.high)


# ---- words ---------------------------------------------------------------------------------------


def _sentence(costs: dict[str, HeadCost]) -> str:
    """`Same FLOPs, 8 times the softmax exponentials. Peak memory: ... Time: more for ...`"""
    parts = [_counts(costs)]
    sizes = {name: cost.peak_bytes for name, cost in costs.items() if isfinite(cost.peak_bytes)}
    if sizes:
        same: dict[str, list[str]] = {}
        for name in sorted(sizes, key=lambda name: -sizes[name]):
            same.setdefault(_times(sizes[name]), []).append(name)
        texts = [f"×{ratio} in {_names(names)}" for ratio, names in same.items()]
        more = f" and {len(texts) - MOST_NAMES} more" if len(texts) > MOST_NAMES else ""
        texts = texts[:MOST_NAMES]
        parts.append(f"Peak memory: {list_text(texts)}{more}.")
    by_word: dict[Word, list[tuple[float, str]]] = {}
    for name, cost in costs.items():
        if (dot := _timed(cost)) is not None:
            by_word.setdefault(dot.word, []).append((dot.ratio, name))
    order: tuple[Word, ...] = ("more", "less", "same", "undecided")
    clauses = [_clause(word, by_word[word], len(costs)) for word in order if word in by_word]
    if clauses:
        parts.append(f"Time: {', '.join(clauses)}.")
    return " ".join(filter(None, parts))


def _counts(costs: dict[str, HeadCost]) -> str:
    """`Same FLOPs, 8 times the exponentials of the softmax.`"""
    texts = []
    for what, nouns in (("flops", "FLOPs"), ("exps", "softmax exponentials")):
        known = {getattr(cost, what) for cost in costs.values() if isfinite(getattr(cost, what))}
        if len(known) == 1:
            ratio = known.pop()
            texts.append(f"same {nouns}" if ratio == 1 else f"{_times(ratio)} times the {nouns}")
    text = ", ".join(texts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _clause(word: Word, found: list[tuple[float, str]], every: int) -> str:
    low, high = min(found)[0], max(found)[0]
    ratios = f"×{_times(low)}" if len(found) == 1 else f"×{_times(low)} to ×{_times(high)}"
    names = [name for _, name in found]
    who = "all" if len(names) == every > 1 else _names(names)
    return f"{word} for {who} ({ratios})"


def _names(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMES:
        return list_text(names)
    return f"{', '.join(names[: MOST_NAMES - 1])} and {len(names) - MOST_NAMES + 1} more"


def _times(ratio: float) -> str:
    return (
        str(int(ratio))
        if ratio == int(ratio)
        else f"{ratio:.2f}"
        if ratio < 10
        else number_text(ratio)
    )


def _all(count: int) -> str:
    words = {2: "both", 3: "all three", 4: "all four", 5: "all five", 6: "all six"}
    return words.get(count, f"all {count}")


def _note(at: str, costs: dict[str, HeadCost], names: Sequence[str]) -> str:
    parts = []
    if len(costs) == len(names) > 1:
        parts.append(f"{at} is the longest at which {_all(len(names))} ran with both.")
    parts.append(f"Grey: ±\u00a0{100 * MARGIN_RATIO:g}\u00a0%, “same”.")
    undecided = [
        found.ratio
        for cost in costs.values()
        if (found := same_time(cost)) and found.answer == "undecided"
    ]
    if noises := sorted({ratio.noise for ratio in undecided if ratio.noise}):
        parts.append(f"Undecided: the interval allows for {list_text(noises)}.")
    if any(ratio.disturbed and not ratio.noise for ratio in undecided):
        parts.append("Undecided: other work disturbed most blocks.")
    return " ".join(parts)
