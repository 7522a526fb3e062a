"""Advice in tables: implementations per question, bytes over the context, kinds of layers."""

from collections.abc import Callable, Iterator, Mapping

from ...harness.files.printable import spaced
from ...harness.stats.intervals import Interval
from ..data.row_groups import by
from ..elements import Block, Marked, Table, Text, table_of
from ..formatting import Number, bytes_text, ratio_range_text, size_text, time_text
from ..quantity import Cell
from ..words import SEEN, TIMES
from .answer import Advice
from .asked import Implementation, Phase
from .choices import Choice, Decision
from .memory import Longest, Need
from .sentences import beside_tables, beside_weights, interval_text, limit_text, named

NOT_KNOWN = "not known"


def blocks(advice: Advice) -> Iterator[Block]:
    """What stands below the headline, in a terminal and on a page."""
    for decision in advice.decisions:
        if not all(one.missing for one in decision.choices):
            some = [(decision, one) for one in decision.choices]
            title = f"Attention in all layers, {named(decision)}"
            yield table_of(title, some, {**CHOICE, **KERNEL}, optional=("reads",))
    left = advice.inquiry.left_bytes
    if advice.longest and (left is None or left >= 0):
        yield _longest(advice)
    if advice.needs:
        yield _memory(advice)
    yield from (Text(text=sentence) for sentence in beside_tables(advice))


def question(decision: Decision) -> str:
    """`prefill 8,192`."""
    return f"{decision.phase} {spaced(decision.context)}"


# ---- implementations -----------------------------------------------------------------------------


def _time(of: tuple[Decision, Choice]) -> Marked:
    one = of[1]
    if one.total_ms is None:
        return Marked(cell=one.why_not, failed=not one.missing)
    return Marked(cell=_call(one.total_ms, one.fitted, one.processor_ms))


def _ratio(of: tuple[Decision, Choice]) -> str:
    one = of[1]
    if one.against is None:
        return "" if one.total_ms is None else "1"
    return f"{one.against.value:.3g}{ratio_range_text(one.against.low, one.against.high)}"


def _verdict(of: tuple[Decision, Choice]) -> str:
    decision, one = of
    if one.against is None:
        return "" if one.total_ms is None else decision.word_of_best
    # one that is seen to be faster than the fastest is so in part of the layers
    said = SEEN.words if one.against.word == "less" else one.against.said
    return TIMES.get(said, said)


def _rates(of: tuple[Decision, Choice]) -> str:
    """Of each kind of layer in decode: `9.8 GB/s (9.4 to 10.2), 61 % of the bandwidth`."""
    rates = (cell.rate for cell in of[1].cells)
    said = (
        f"{rate.rate_text}{f', {rate.share_text} of the bandwidth' if rate.share_text else ''}"
        for rate in rates
        if rate is not None and rate.rate_text
    )
    return "; ".join(dict.fromkeys(said))


Columns = Mapping[str, Callable[[tuple[Decision, Choice]], Cell | Marked]]
CHOICE: Columns = {
    "attn_implementation": lambda of: Marked(
        cell=of[1].implementation.name, strong=of[1] is of[0].best
    ),
    "time": _time,
    "ratio": _ratio,
    "verdict": _verdict,
}
KERNEL: Columns = {
    "kernel": lambda of: ", ".join(of[1].kernels) or ("not seen" if of[1].total_ms else ""),
    "peak": lambda of: bytes_text(of[1].peak_bytes),
    "reads": _rates,
}


# ---- bytes ---------------------------------------------------------------------------------------


def _memory(advice: Advice) -> Table:
    """Bytes at the contexts that were asked."""
    budget = advice.inquiry.memory_bytes

    def fits(of: tuple[Phase, Implementation | None, Need]) -> str:
        total = of[2].total_bytes
        return "" if budget is None or total is None else "yes" if total <= budget else "no"

    def kept(of: tuple[Phase, Implementation | None, Need]) -> str:
        return _unless(of[0] == "training", of[2].cache_bytes)

    def states(of: tuple[Phase, Implementation | None, Need]) -> str:
        return _unless(of[2].state_bytes == 0, of[2].state_bytes)

    def pooled(of: tuple[Phase, Implementation | None, Need]) -> str:
        text = _unless(of[0] == "training", of[2].paged_cache_bytes)
        return text if windowed else ""

    windowed = any(
        size_text(one.cache_bytes) != size_text(one.paged_cache_bytes) for _, _, one in advice.needs
    )
    room = "" if budget is None else f" of {size_text(budget)}{beside_weights(advice)}"
    return table_of(
        f"Memory{room}",
        advice.needs,
        {
            "question": lambda of: f"{of[0]} {spaced(of[2].context)}",
            "weights": lambda of: size_text(of[2].weight_bytes) or NOT_KNOWN,
            "keys and values": kept,
            "states": states,
            "paged": pooled,
            "kept for backward": lambda of: _unless(of[0] != "training", of[2].kept_bytes),
            "attention of one layer": lambda of: size_text(of[2].attention_bytes) or NOT_KNOWN,
            "by": lambda of: f"{of[1].name}, {of[2].words}" if of[1] else of[2].words,
            "in all": lambda of: size_text(of[2].total_bytes) or NOT_KNOWN,
            "fits": fits,
        },
        optional=("keys and values", "states", "paged", "kept for backward"),
    )


def _unless(absent: bool, size_bytes: int | None) -> str:
    return "" if absent else size_text(size_bytes) or NOT_KNOWN


def _longest(advice: Advice) -> Table:
    """The longest context of each implementation; phases of which the same is said in one row."""

    said: Mapping[str, Callable[[Longest], Cell]] = {
        "tokens": _tokens,
        "limit": lambda one: "" if one.context is None else _limit(one),
        "attention's bytes": lambda one: "; ".join(filter(None, [one.words, one.checked])),
    }
    rows = by(
        sorted(advice.longest, key=lambda one: one.context is None),
        lambda one: (one.implementation.name, *(cell(one) for cell in said.values())),
    )
    room = size_text(advice.inquiry.memory_bytes)
    return Table(
        title=f"Longest context{f' in {room}{beside_weights(advice)}' if room else ''}",
        columns=("attn_implementation", "phase", *said),
        rows=tuple(
            (name, ", ".join(one.phase for one in some), *cells)
            for (name, *cells), some in rows.items()
        ),
    )


def _limit(one: Longest) -> str:
    """`memory`, `the model's`."""
    return limit_text(one).replace(" is the limit", "").replace(" own limit", "")


def _tokens(one: Longest) -> Cell:
    least = "≥\u00a0" if one.at_least else ""
    return NOT_KNOWN if one.context is None else Number(f"{least}{spaced(one.context)}")


# ---- layers --------------------------------------------------------------------------------------


def layer_table(advice: Advice) -> Table | None:
    """Every kind of layer, with the advised implementation's time and bytes for one call."""
    rows: list[tuple[Cell, ...]] = []
    for decision in advice.decisions:
        for cell in decision.best.cells if decision.best else ():
            time = _call(cell.time_ms, cell.fitted, cell.processor_ms) if cell.time_ms else ""
            place = (cell.asked.layer, cell.asked.count, question(decision))
            rows.append((*place, cell.implementation.name, time, bytes_text(cell.peak_bytes)))
        for asked in decision.not_measured:
            place = (asked.layer, asked.count, question(decision))
            rows.append((*place, "not measured", asked.why, ""))
    for what, count in advice.inquiry.others.items():
        rows.append((what, count, "any", "not measured", "no softmax attention", ""))
    if not rows:
        return None
    return Table(
        title=f"Kinds of layers of {advice.inquiry.model}",
        columns=("layer", "how many", "question", "implementation", "one call", "peak"),
        rows=tuple(rows),
    )


def _call(time_ms: Interval, fitted: str, processor_ms: float | None) -> Number:
    text = interval_text(time_ms) + (" (fitted)" if fitted else "")
    return Number(text + ("" if processor_ms is None else f", processor {time_text(processor_ms)}"))
