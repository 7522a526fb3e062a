"""Advice in tables: implementations per question, bytes over the context, kinds of layers."""

from collections.abc import Iterator

from ...advice.answer import Advice
from ...advice.choices import Decision
from ...advice.memory import Longest
from ...elements import Table
from ...formatting import bytes_text, plural, ratio_range_text, size_text
from .sentences import VERBS, beside_weights, interval_text, limit_text, seconds_text

STATE = {"slower": "slower", "same": "same", "undecided": "undecided", "faster": "undecided"}


def choice_tables(advice: Advice) -> Iterator[Table]:
    """One per phase and context."""
    for decision in advice.decisions:
        if any(not one.missing for one in decision.choices):
            yield _choices(decision)


def _choices(decision: Decision) -> Table:
    rows, failed = [], set()
    for place, one in enumerate(decision.choices):
        if one.total_ms is None:
            failed |= set() if one.missing else {(place, 1)}
            rows.append((one.implementation.name, one.why_not, "", "", "", ""))
            continue
        ratio = "1" if one.against is None else f"{one.against.ratio:.3g}"
        if one.against is not None:
            ratio += ratio_range_text(one.against.low, one.against.high)
        verdict = decision.word_of_best if one.against is None else STATE[one.against.verdict]
        time = interval_text(one.total_ms) + (" (fitted)" if one.fitted else "")
        rows.append(
            (
                one.implementation.name,
                time,
                ratio,
                verdict,
                ", ".join(one.kernels) or "not seen",
                bytes_text(one.peak_bytes),
            )
        )
    words = f"{VERBS[decision.phase]} {decision.context:,} tokens"
    return Table(
        title=f"Attention in all layers, {words}",
        columns=("attn_implementation", "time", "against the fastest", "verdict", "kernel", "peak"),
        rows=tuple(rows),
        strong=frozenset({(0, 0)} if decision.best is not None else ()),
        failed=frozenset(failed),
    )


def memory_table(advice: Advice) -> Table | None:
    """Bytes at the contexts that were asked; None if nothing is known."""
    rows = []
    for phase, implementation, need in advice.needs:
        known = need.weights is not None
        rows.append(
            (
                f"{need.context:,}",
                phase,
                implementation.name,
                size_text(need.weights) if known else "not known",
                size_text(need.cache) if phase != "training" else "none",
                size_text(need.paged_cache) if phase != "training" else "none",
                _kept(phase, need.kept),
                size_text(need.attention) or "not known",
                size_text(need.total) or "not known",
            )
        )
    if not rows:
        return None
    return Table(
        title="Memory at the contexts in question",
        columns=(
            *("context", "phase", "attention by", "weights", "keys and values"),
            *("in one pool of pages", "kept for the backward pass"),
            *("attention of one layer", "in all"),
        ),
        rows=tuple(rows),
    )


def _within(advice: Advice, one: Longest) -> str:
    seconds = seconds_text(advice, one.phase)
    return f" in {seconds}" if seconds else ""


def _kept(phase: str, kept_bytes: int | None) -> str:
    return "none" if phase != "training" else size_text(kept_bytes) or "not known"


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
    room = f" in {room}{beside_weights(advice)}" if room else ""
    return Table(
        title=f"Longest context{room}",
        columns=("attn_implementation", "phase", "tokens", "limit", "attention's bytes"),
        rows=tuple(rows),
    )


def _tokens(one: Longest) -> str:
    if one.context is None:
        return "not known"
    return f"{'at least ' if one.at_least else ''}{one.context:,}"


def layer_table(advice: Advice) -> Table | None:
    """Every kind of layer, with the advised implementation's time and bytes for one call."""
    rows = []
    for decision in advice.decisions:
        best = decision.best
        for cell in best.cells if best else ():
            time = interval_text(cell.time_ms) if cell.time_ms else ""
            rows.append(
                (
                    cell.asked.layer,
                    str(cell.asked.count),
                    f"{decision.phase} {decision.context:,}",
                    cell.implementation.name,
                    time + (" (fitted)" if cell.fitted else ""),
                    bytes_text(cell.peak_bytes),
                )
            )
        for asked in decision.not_measured:
            question = f"{decision.phase} {decision.context:,}"
            rows.append((asked.layer, str(asked.count), question, "not measured", asked.why, ""))
    for what, count in advice.inquiry.others.items():
        rows.append((what, str(count), "any", "not measured", "no softmax attention", ""))
    if not rows:
        return None
    return Table(
        title=f"Kinds of layers of {advice.inquiry.model}",
        columns=("layer", "how many", "question", "implementation", "one call", "peak"),
        rows=tuple(rows),
    )


def about(advice: Advice) -> str:
    """`llama-3-8b (llama), bf16, batch 1, on cpu: rows of 2 runs`."""
    asked = advice.inquiry
    tp = f", one of {asked.tp} devices" if asked.tp > 1 else ""
    rows = f"rows of {plural(len(advice.runs), 'run')}" if advice.runs else "no rows yet"
    if advice.rows.runs and not advice.runs:
        rows = f"rows of {plural(len(advice.rows.runs), 'run')}, without a time"
    return (
        f"{asked.model} ({asked.model_type}), {asked.dtype}, batch {asked.batch}{tp}, on"
        f" {asked.device_name}; {rows}; memory: {asked.memory_from}"
    )
