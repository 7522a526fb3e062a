"""Advice in tables: implementations per question, bytes over the context, kinds of layers."""

from collections.abc import Iterator

from ..elements import Block, Marked, Table, Text
from ..formatting import Number, bytes_text, ratio_range_text, size_text
from .answer import Advice
from .choices import Choice, Decision
from .memory import Longest
from .sentences import (
    beside_tables,
    beside_weights,
    interval_text,
    limit_text,
    named,
    seconds_text,
)

CHOICE = ("attn_implementation", "time", "ratio", "verdict", "kernel", "peak")


def blocks(advice: Advice) -> Iterator[Block]:
    """What stands below the headline, in a terminal and on a page."""
    yield from choice_tables(advice)
    found = (longest_table(advice), memory_table(advice))
    yield from (one for one in found if one is not None)
    yield from (Text(text=sentence) for sentence in beside_tables(advice))


def question(decision: Decision) -> str:
    """`prefill 8,192`."""
    return f"{decision.phase} {decision.context:,}"


def choice_tables(advice: Advice) -> Iterator[Table]:
    """Every implementation, in a table per phase and context where something is measured."""
    for decision in advice.decisions:
        some = decision.choices
        if all(one.missing for one in some):
            continue
        reads = any(map(_rates, some))
        yield Table(
            title=f"Attention in all layers, {named(decision)}",
            columns=(*CHOICE, "reads") if reads else CHOICE,
            rows=tuple(
                (
                    Marked(cell=name, strong=decision.best is not None and one is some[0]),
                    Marked(cell=time, failed=one.total_ms is None and not one.missing),
                    *others,
                    *([_rates(one)] * reads),
                )
                for one in some
                for name, time, *others in [choice_cells(decision, one)]
            ),
        )


def choice_cells(decision: Decision, one: Choice) -> tuple[str, ...]:
    name = one.implementation.name
    if one.total_ms is None:
        return name, one.why_not, "", "", "", ""
    ratio, verdict = "1", decision.word_of_best
    if one.against is not None:
        ratio = f"{one.against.ratio:.3g}{ratio_range_text(one.against.low, one.against.high)}"
        # one that is seen to be faster than the fastest is so in part of the layers
        verdict = "undecided" if one.against.verdict == "faster" else one.against.verdict
    return (
        name,
        Number(interval_text(one.total_ms) + (" (fitted)" if one.fitted else "")),
        ratio,
        verdict,
        ", ".join(one.kernels) or "not seen",
        bytes_text(one.peak_bytes),
    )


def _rates(one: Choice) -> str:
    """Of each kind of layer in decode: `9.8 GB/s (9.4 to 10.2), 61 % of the bandwidth`."""
    rates = (cell.rate for cell in one.cells)
    said = (
        f"{rate.rate_text}{f', {rate.share_text} of the bandwidth' if rate.share_text else ''}"
        for rate in rates
        if rate is not None and rate.rate_text
    )
    return "; ".join(dict.fromkeys(said))


def memory_table(advice: Advice) -> Table | None:
    """Bytes at the contexts that were asked; None if nothing is known."""
    budget = advice.inquiry.memory_bytes
    rows: list[tuple[str, ...]] = []
    for phase, implementation, need in advice.needs:
        training = phase == "training"
        fits = "" if budget is None or need.total is None else _fits(need.total <= budget)
        rows.append(
            (
                f"{phase} {need.context:,}",
                "not known" if need.weights is None else size_text(need.weights),
                "none" if training else size_text(need.cache),
                "none" if training else size_text(need.paged_cache),
                (size_text(need.kept) or "not known") if training else "none",
                size_text(need.attention) or "not known",
                f"{implementation.name}, {need.words}",
                size_text(need.total) or "not known",
                fits,
            )
        )
    room = "" if budget is None else f" in {size_text(budget)}{beside_weights(advice)}"
    columns = (
        *("question", "weights", "keys and values", "in one pool of pages"),
        *("kept for backward", "attention of one layer", "by", "in all", f"fits{room}"),
    )
    said = [at for at in range(len(columns)) if any(row[at] != "none" for row in rows)]
    picked = [tuple(cells[at] for at in said) for cells in (columns, *rows)]
    return Table(title="Memory", columns=picked[0], rows=tuple(picked[1:])) if rows else None


def _fits(fits: bool) -> str:
    return "yes" if fits else "no"


def _within(advice: Advice, one: Longest) -> str:
    seconds = seconds_text(advice, one.phase)
    return f" in {seconds}" if seconds else ""


def longest_table(advice: Advice) -> Table | None:
    """The longest context of each implementation."""
    rows = [
        (
            one.implementation.name,
            f"{one.phase}{_within(advice, one)}",
            _tokens(one),
            "" if one.context is None else limit_text(one),
            "; ".join(filter(None, [one.words, one.checked])),
        )
        for one in advice.longest
    ]
    if not rows:
        return None
    room = size_text(advice.inquiry.memory_bytes)
    within = f" in {room}{beside_weights(advice)}" if room else ""
    return Table(
        title=f"Longest context{within}",
        columns=("attn_implementation", "phase", "tokens", "limit", "attention's bytes"),
        rows=tuple(rows),
    )


def _tokens(one: Longest) -> str:
    if one.context is None:
        return "not known"
    return Number(f"{'at least ' if one.at_least else ''}{one.context:,}")


def layer_table(advice: Advice) -> Table | None:
    """Every kind of layer, with the advised implementation's time and bytes for one call."""
    rows: list[tuple[str, ...]] = []
    for decision in advice.decisions:
        best = decision.best
        for cell in best.cells if best else ():
            time = interval_text(cell.time_ms) if cell.time_ms else ""
            rows.append(
                (
                    cell.asked.layer,
                    str(cell.asked.count),
                    question(decision),
                    cell.implementation.name,
                    Number(time + (" (fitted)" if cell.fitted else "")),
                    bytes_text(cell.peak_bytes),
                )
            )
        for asked in decision.not_measured:
            rows.append(
                (asked.layer, str(asked.count), question(decision), "not measured", asked.why, "")
            )
    for what, count in advice.inquiry.others.items():
        rows.append((what, str(count), "any", "not measured", "no softmax attention", ""))
    if not rows:
        return None
    return Table(
        title=f"Kinds of layers of {advice.inquiry.model}",
        columns=("layer", "how many", "question", "implementation", "one call", "peak"),
        rows=tuple(rows),
    )
