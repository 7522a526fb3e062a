"""Advice in sentences: what to use, how long it takes, what fits, and what is not known."""

from collections.abc import Iterator, Sequence
from shlex import quote

from ....harness.stats.intervals import Interval
from ...advice.answer import Advice
from ...advice.asked import Phase
from ...advice.choices import Choice, Decision
from ...advice.memory import Longest
from ...comparison.verdict import REASONS
from ...formatting import (
    in_brackets,
    list_text,
    measured_bounds_text,
    plural,
    size_text,
    time_text,
    times_text,
)

LIMITS = {
    "memory": "memory is the limit",
    "model": "the model takes no more",
    "time": "time is the limit",
    "backend": "the implementation fails beyond",
    "unknown": "nothing is known beyond",
    "none": "memory is no limit",
}
HOW = {"prefill": "prefilled at once", "decode": "while decoding", "training": "in training"}
VERBS = {"prefill": "prefill of", "decode": "decode after", "training": "a training step on"}
NOT_INCLUDED = (
    "Not included: activations of the feed-forward layers, logits, the allocator's fragmentation,"
    " the CUDA context, and what the rest of a forward pass takes; in training, also what it keeps"
    " for the backward pass, gradients of weights, and the optimizer's state."
)
MOST_REASON = 160
AS_GOOD_RATIO = 1.1  # to the fastest, of one that cannot be told apart from it


def headline(advice: Advice) -> str:
    """One sentence: what to use, and whether that is clear."""
    model = advice.inquiry.model
    decided = [decision for decision in advice.decisions if decision.best is not None]
    if not decided:
        if not any(decision.choices for decision in advice.decisions):
            return f"{model} has no attention here that attnbench can measure."
        if advice.rows.runs:
            return (
                f"No time is measured yet for {model} on this device: what follows is about bytes."
            )
        return (
            f"Nothing is measured yet for {model} on this device: what follows is by formulas, and"
            " says nothing about time."
        )
    common = _common(decided)
    uses = [(common, decided)] if common is not None else advice.recommended
    return f"Use attn_implementation={'; '.join(_use(*use) for use in uses)}."


def _use(name: str, decisions: Sequence[Decision]) -> str:
    """`"sdpa" for prefill of 1,024 tokens (faster than eager)`: and whether that is clear."""
    parts = []
    for decision in decisions:
        parts.append(f"{question(decision)} ({_how_clear(name, decision)})")
    return f'"{name}" for {list_text(parts)}'


def _how_clear(name: str, decision: Decision) -> str:
    """Against which others this is decided, and against which not."""
    found: dict[str, list[str]] = {}
    for one in decision.choices:
        if one.against is not None:
            found.setdefault(one.against.verdict, []).append(one.implementation.name)
    slower, undecided = found.get("slower", []), found.get("undecided", [])
    if (best := _name(decision)) != name:  # it is as good as the fastest
        slower, undecided = [], [best] if name in undecided else []
    if slower and undecided:
        return f"faster than {list_text(slower)}; undecided against {list_text(undecided)}"
    if undecided:
        return f"undecided: {list_text(undecided)} may be as fast or faster"
    return f"faster than {list_text(slower)}" if slower else "no other is clearly faster"


def _name(decision: Decision) -> str:
    return decision.best.implementation.name if decision.best else ""


def _common(decided: Sequence[Decision]) -> str | None:
    """An implementation that is the fastest everywhere, or as good as the fastest."""
    possible: list[str] | None = None
    for decision in decided:
        names = [_name(decision)]
        names += [
            one.implementation.name
            for one in decision.ties
            if one.against is not None and one.against.ratio <= AS_GOOD_RATIO
        ]
        possible = names if possible is None else [one for one in possible if one in names]
    wins = [_name(decision) for decision in decided]
    return max(possible, key=wins.count) if possible else None


def question(decision: Decision) -> str:
    """`prefill of 8,192 tokens`."""
    return f"{VERBS[decision.phase]} {decision.context:,} tokens"


def sentences(advice: Advice) -> Iterator[str]:
    """Everything but the headline, the most important first."""
    yield from map(decision_sentence, advice.decisions)
    yield from _longest(advice)
    yield from _others(advice)


def beside_tables(advice: Advice) -> Iterator[str]:
    """What the tables of choices and of longest contexts do not say."""
    for decision in advice.decisions:
        if decision.best is not None and (rate := rates_text(decision.best)):
            name, text = decision.best.implementation.name, question(decision)
            yield f"{text[0].upper()}{text[1:]}: {name} reads {rate}."
    yield from _others(advice)


def _others(advice: Advice) -> Iterator[str]:
    yield from _memory(advice)
    yield from (f"Caution: {trap}." for trap in advice.traps)
    count, timed = advice.disturbed
    if count:
        yield (
            f"Caution: other work competed for the same cores in most blocks of {count} of these"
            f" {plural(timed, 'time')}: measure again when the machine is idle; the newest rows"
            " count."
        )
    yield from (f"Decode: {note}." for note in rate_notes(advice))
    yield from _unknown(advice)
    yield NOT_INCLUDED


def times_of_best(advice: Advice) -> str:
    """Of what is advised: `Prefill of 8,192 tokens: sdpa takes 5.1 s (4.9 to 5.3) in 32 layers.`"""
    parts = []
    for decision in advice.decisions:
        if decision.best is not None:
            text = question(decision)
            parts.append(f"{text[0].upper()}{text[1:]}: {_choice(decision.best)}.")
    return " ".join(parts)


def decision_sentence(decision: Decision) -> str:
    """`Prefill of 8,192 tokens: sdpa (kernel flash) takes 5.1 s (4.9 to 5.3) in 32 layers; ...`"""
    text = question(decision)
    text = text[0].upper() + text[1:]
    if not decision.choices:
        return f"{text}: not measured here, see below."
    parts = [_choice(one) for one in decision.choices]
    return f"{text}: {'; '.join(parts)}."


def _choice(one: Choice) -> str:
    name = one.implementation.name
    if one.total_ms is None:
        return f"{name} {_cut(one.why_not)}"
    kernel = f" (kernel {list_text(one.kernels)})" if one.kernels else ""
    if one.against is None:
        layers = plural(sum(cell.asked.count for cell in one.cells), "layer")
        rate = rates_text(one)
        rate = f", {rate}" if rate else ""
        return f"{name}{kernel} takes {interval_text(one.total_ms)} in {layers}{rate}{_fitted(one)}"
    against = one.against
    ratio = times_text(against.ratio, against.low, against.high)
    doubt = ", ".join(REASONS[code] for code in against.reasons[:1])
    word = "" if against.verdict == "slower" else f", {against.verdict}"
    because = f" ({doubt})" if doubt and against.verdict == "undecided" else ""
    return f"{name}{kernel} takes {ratio} as long{word}{because}{_fitted(one)}"


def rates_text(one: Choice) -> str:
    """Of each kind of layer in decode: `9.8 GB/s (9.4 to 10.2), 61 % of the measured bandwidth`."""
    parts = []
    for cell in one.cells:
        rate = cell.rate
        if rate is not None and rate.rate_text:
            share = f", {rate.share_text} of the measured bandwidth" if rate.share_text else ""
            parts.append(f"{rate.rate_text}{share}")
    return "; ".join(dict.fromkeys(parts))


def rate_notes(advice: Advice) -> list[str]:
    """Why decode has no share of the bandwidth, or what limits it; each once."""
    notes: dict[str, None] = {}
    for decision in advice.decisions:
        for cell in decision.best.cells if decision.best else ():
            rate = cell.rate
            notes |= dict.fromkeys(rate.notes if rate is not None else ())
    return list(notes)


def interval_text(time_ms: Interval) -> str:
    """`5.13 s (4.90 to 5.31)`, in one unit."""
    text = time_text(time_ms.value)
    number = float(text.partition(" ")[0])
    scale = number / time_ms.value if time_ms.value else 0.0
    return f"{text}{in_brackets(measured_bounds_text(scale * time_ms.low, scale * time_ms.high))}"


def _fitted(one: Choice) -> str:
    return f" [{one.fitted}]" if one.fitted else ""


def _cut(text: str) -> str:
    return text if len(text) <= MOST_REASON else f"{text[: MOST_REASON - 1]}…"


def first_words(text: str) -> str:
    """Up to the first colon or semicolon."""
    return text.replace(";", ":").partition(":")[0]


def _memory(advice: Advice) -> Iterator[str]:
    for phase, implementation, need in advice.needs:
        weights = size_text(need.weights) if need.weights is not None else "not known"
        parts = [f"weights {weights}", f"keys and values {size_text(need.cache)}"]
        if need.paged_cache != need.cache:
            parts[-1] += f" ({size_text(need.paged_cache)} in an engine with one pool of pages)"
        if phase == "training":
            parts[-1] = f"kept for the backward pass {size_text(need.kept) or 'not known'}"
        attention = size_text(need.attention) if need.attention is not None else "not known"
        parts.append(f"attention of one layer {attention} ({implementation.name}, {need.words})")
        total, budget = need.total, advice.inquiry.memory_bytes
        end = ""
        if total is not None:
            end = f": {size_text(total)} in all"
            if budget is not None:
                end += f", which {'fits' if total <= budget else 'does not fit'} in"
                end += f" {size_text(budget)}{beside_weights(advice)}"
        place = f"{VERBS[phase]} {need.context:,} tokens"
        yield f"Memory for {place}: {', '.join(parts)}{end}."


def _longest(advice: Advice) -> Iterator[str]:
    for phase in dict.fromkeys(one.phase for one in advice.longest):
        found = [one for one in advice.longest if one.phase == phase]
        room = f" {room_text(advice, phase)}" if room_text(advice, phase) else ""
        yield f"Longest context{room}, {HOW[phase]}: {longest_sentence(found)}"
        for checked in dict.fromkeys(one.checked for one in found if one.checked):
            names = [one.implementation.name for one in found if one.checked == checked]
            yield f"The wall of {list_text(names)}: {checked}."


def beside_weights(advice: Advice) -> str:
    """What memory must hold besides, where nobody knows how much that is."""
    return " beside the weights" if advice.inquiry.weight_bytes is None else ""


def longest_sentence(found: Sequence[Longest]) -> str:
    """`12,345 tokens with sdpa (memory is the limit); 1,234 with eager; not known for ...`"""
    together: dict[tuple[int, str, str], list[str]] = {}
    unknown: list[str] = []
    for one in found:
        if one.context is None:
            unknown.append(one.implementation.name)
        else:
            least = "at least " if one.at_least else ""
            same = together.setdefault((one.context, limit_text(one), least), [])
            same.append(one.implementation.name)
    parts = [
        f"{least}{tokens:,} tokens with {list_text(names)} ({limit})"
        for (tokens, limit, least), names in sorted(together.items(), reverse=True)
    ]
    parts += [f"not known for {list_text(unknown)}"] if unknown else []
    text = "; ".join(parts) or "not asked"
    return f"{text[0].upper()}{text[1:]}."


def room_text(advice: Advice, phase: Phase) -> str:
    """`in 4.0 GiB beside the weights and 5 s of attention`; "" where neither is known."""
    budget, seconds = advice.inquiry.memory_bytes, seconds_text(advice, phase)
    parts = [] if budget is None else [f"{size_text(budget)}{beside_weights(advice)}"]
    parts += [f"{seconds} of attention"] if seconds else []
    return f"in {' and '.join(parts)}" if parts else ""


def seconds_text(advice: Advice, phase: Phase) -> str:
    """The time that attention of all layers may take; "" if any."""
    seconds = advice.inquiry.max_seconds.get(phase)
    return "" if seconds is None else f"{seconds:g} s"


def limit_text(one: Longest) -> str:
    """`memory is the limit, by a wall that was found`."""
    by_wall = one.found_by == "wall" and one.limit in ("memory", "unknown")
    taken = ""
    if one.limit == "time" and one.time is not None and one.time.total_ms is not None:
        taken = f": it takes {interval_text(one.time.total_ms)}"
    return LIMITS[one.limit] + (", by a wall that was found" if by_wall else "") + taken


def _unknown(advice: Advice) -> Iterator[str]:
    for asked in advice.not_measured:
        layers = plural(asked.count, "layer")
        yield f"Not measured: {layers} of {asked.layer}: {asked.why}."
    for what, count in advice.inquiry.others.items():
        yield f"Not measured: {plural(count, 'layer')} of {what}, which is no softmax attention."
    own = [one for one in advice.inquiry.implementations if one.own]
    if own:
        pairs = list_text([f"{one.backend} for {one.name}" for one in own])
        yield (
            f"transformers is not installed: attnbench's own backends stand for its functions"
            f" ({pairs}); flash_attention_2 is left out."
        )
    if advice.inquiry.weight_bytes is None:
        yield (
            "The bytes of the weights are not known and come on top: give the folder that has the"
            " safetensors files beside config.json."
        )
    if advice.missing:
        yield f"To measure what is missing: {measure_command(advice)}"


def measure_command(advice: Advice) -> str:
    """The same question with --measure."""
    return f"attnbench advise {' '.join(map(quote, advice.inquiry.arguments))} --measure"


def run_commands(advice: Advice) -> Iterator[str]:
    """What measures each number again."""
    asked = advice.inquiry
    backends = ",".join(one.backend for one in asked.implementations)
    tp = f" --tp {asked.tp}" if asked.tp > 1 else ""
    for decision in advice.decisions:
        if decision.choices:
            yield (
                f"attnbench run --model {quote(asked.config)} --phase {decision.phase} --seq-len"
                f" {decision.context} --batch {asked.batch} --dtype {asked.dtype}{tp}"
                f" --backends {backends} --device {asked.device}"
            )
