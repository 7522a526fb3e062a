"""Advice in sentences: what to use, how long a context fits, and what is not known."""

from collections.abc import Iterator, Sequence
from shlex import quote

from ...harness.files.printable import spaced
from ...harness.stats.intervals import Interval
from ..data.row_groups import by
from ..formatting import (
    capital,
    in_brackets,
    list_text,
    measured_bounds_text,
    plural,
    size_text,
    time_text,
)
from ..words import NOT_DECIDED
from .answer import Advice
from .choices import AS_GOOD_RATIO, Decision
from .memory import Longest

LIMITS = {
    "weights": "the weights do not fit",
    "memory": "memory is the limit",
    "model": "the model's own limit",
    "backend": "the implementation fails beyond",
    "unknown": "nothing is known beyond",
    "none": "memory is no limit",
}
VERBS = {
    "prefill": "prefill of",
    "chunk": "a chunk at the end of",
    "decode": "decode after",
    "verify": "verification at the end of",
    "training": "a training step on",
}
WARM = (
    "Decode on a CPU: these calls read the same keys and values again, which caches may"
    " hold; in a model those of all layers come in turn. In a small Llama that was run end to end"
    " attention of a step took 2.1 times as long."
)
COLD = {
    "cpu": "Decode on a CPU: each call read other keys and values, from memory, as the other layers"
    " of a model leave the caches.",
    "cuda": "Decode on a GPU: before each call the L2 was flushed, as the other layers of a model"
    " leave it.",
}


def headline(advice: Advice) -> str:
    """Whether the model fits, and what to use."""
    return f"{room(advice)} {use(advice)}"


def room(advice: Advice) -> str:
    """`48 GiB - 15 GiB of weights in bf16 = 33 GiB -> 8,192 tokens of prefill with sdpa (...).`"""
    asked = advice.inquiry
    memory = size_text(asked.memory_bytes)
    weights, left = size_text(asked.weight_bytes), asked.left_bytes
    stored = asked.weights_in + (f", on each of {asked.tp} devices" if asked.tp > 1 else "")
    if left is not None and left < 0:
        return (
            f"The weights, {weights} {stored}, do not fit in {memory}: they alone take"
            f" {spaced(asked.devices_for_weights or 0)} devices of {memory}."
        )
    if not memory:
        return "How much memory there is is not known: give --memory-gib."
    if asked.beside_weights:
        begin = f"{memory} beside the weights"
    elif left is None:
        begin = f"{memory} - weights of unknown size; without them"
    else:
        begin = f"{memory} - {weights} of weights {stored} = {size_text(left)}"
    phase = asked.phases[0]
    best = max(
        (one for one in advice.longest if one.phase == phase and one.context is not None),
        key=lambda one: _preferred(advice, one),
        default=None,
    )
    if best is None:
        return f"{begin} -> no longest context is known for {phase}."
    least = "at least " if best.at_least else ""
    return (
        f"{begin} -> {least}{spaced(best.context or 0)} tokens of {phase} with"
        f" {best.implementation.name} ({limit_text(best)})."
    )


def _preferred(advice: Advice, one: Longest) -> tuple[bool, int, int]:
    """More for what is advised in its phase, then for the longest, then for what needs least."""
    decided = {of.name_of_best for of in advice.decisions if of.phase == one.phase}
    used = one.implementation.name in decided
    needed = (one.need and one.need.total_bytes) or 0
    return used, one.context or 0, -needed


def use(advice: Advice) -> str:
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
    parts = [f"{named(decision)} ({_how_clear(name, decision)})" for decision in decisions]
    return f'"{name}" for {list_text(parts)}'


def _how_clear(name: str, decision: Decision) -> str:
    """Against which others this is decided, and against which not."""
    found: dict[str, list[str]] = {}
    for one in decision.choices:
        if one.against is not None:
            found.setdefault(one.against.word, []).append(one.implementation.name)
    slower, left = found.get("more", []), found.get(NOT_DECIDED, [])
    best = decision.best.implementation.name if decision.best else ""
    if best != name:  # it is as good as the fastest
        slower, left = [], [best] if name in left else []
    if slower and left:
        return f"faster than {list_text(slower)}; not confirmed against {list_text(left)}"
    if left:
        return f"not confirmed: {list_text(left)} may be as fast or faster"
    return f"faster than {list_text(slower)}" if slower else "no other is clearly faster"


def _common(decided: Sequence[Decision]) -> str | None:
    """An implementation that is the fastest everywhere, or as good as the fastest."""
    possible: list[str] | None = None
    for decision in decided:
        names = [decision.choices[0].implementation.name]
        names += [
            one.implementation.name
            for one in decision.ties
            if one.against is not None and one.against.value <= AS_GOOD_RATIO
        ]
        possible = names if possible is None else [one for one in possible if one in names]
    wins = [decision.name_of_best for decision in decided]
    return max(possible, key=wins.count) if possible else None


def named(decision: Decision) -> str:
    """`prefill of 8,192 tokens`."""
    return f"{VERBS[decision.phase]} {spaced(decision.context)} tokens"


def about(advice: Advice) -> str:
    """`llama-3-8b (llama), bf16, batch 1, on cpu: rows of 2 runs`."""
    asked = advice.inquiry
    tp = f", one of {asked.tp} devices" if asked.tp > 1 else ""
    runs, timed = advice.runs or advice.rows.runs, "" if advice.runs else ", without a time"
    guess = " (a guess)" if asked.dtype_guess else ""
    cache = f", keys and values in {asked.kv_dtype}" if asked.kv_dtype else ""
    own = any(one.own for one in asked.implementations)
    whose = "attnbench's own functions" if own else "transformers' functions"
    rows = f"; {whose}, no engine was measured; rows of {plural(len(runs), 'run')}{timed}"
    return (
        f"{asked.model} ({asked.model_type}), {asked.dtype}{guess}{cache}, batch {asked.batch}{tp},"
        f" on {asked.device_name}{rows if runs else ''}; memory: {asked.memory_from}"
    )


def beside_tables(advice: Advice) -> Iterator[str]:
    """What no table says: cautions, and what is not known."""
    cautions = (f"config.json: {one}" for one in advice.inquiry.cautions)
    yield from (f"Caution: {one}." for one in (*cautions, *advice.traps, *advice.fallbacks))
    count, timed = advice.disturbed
    if count:
        yield (
            f"Caution: other work competed for the same cores in most blocks of {count} of these"
            f" {plural(timed, 'time')}: measure again when the machine is idle; the newest rows"
            " count."
        )
    yield from (f"Decode: {note}." for note in rate_notes(advice))
    decoded = [one for one in advice.decisions if one.phase in ("decode", "verify") and one.best]
    if decoded and (device := advice.inquiry.device) in COLD:
        cells = (cell for one in decoded for choice in one.choices for cell in choice.cells)
        yield WARM if device == "cpu" and any(cell.is_warm for cell in cells) else COLD[device]
    yield from _sequences(advice)
    yield from advice.inquiry.notes
    yield from _unknown(advice)
    yield not_included(advice)


def not_included(advice: Advice) -> str:
    """What no number contains."""
    asked = advice.inquiry
    parts = ["activations of the feed-forward layers", "logits", "fragmentation"]
    parts += ["the CUDA context"] if asked.device == "cuda" else []
    parts += ["what layers of other kinds take in a pass"] if any(asked.states.values()) else []
    parts += ["the rest of a forward pass"]
    if "training" in asked.phases:
        parts += ["what that keeps for the backward pass", "gradients of weights"]
        parts += ["the optimizer's state"]
    return f"Not included: {list_text(parts)}."


def rate_notes(advice: Advice) -> list[str]:
    """Why decode has no share of the bandwidth, or what limits it; each once."""
    chosen = (decision.best for decision in advice.decisions if decision.best is not None)
    rates = (cell.rate for best in chosen for cell in best.cells)
    return list(dict.fromkeys(note for rate in rates if rate is not None for note in rate.notes))


def interval_text(time_ms: Interval) -> str:
    """`5.13 s (4.90 to 5.31)`, in one unit."""
    text = time_text(time_ms.value)
    number = float(text.partition(" ")[0])
    scale = number / time_ms.value if time_ms.value else 0.0
    return f"{text}{in_brackets(measured_bounds_text(scale * time_ms.low, scale * time_ms.high))}"


def beside_weights(advice: Advice) -> str:
    """What memory must hold besides, where nobody knows how much that is."""
    return " beside the weights" if advice.inquiry.weight_bytes is None else ""


def longest_sentence(found: Sequence[Longest]) -> str:
    """`12,345 tokens with sdpa (memory is the limit); 1,234 with eager; not known for ...`"""

    def names(some: Sequence[Longest]) -> str:
        return list_text([one.implementation.name for one in some])

    known = [one for one in found if one.context is not None]
    unknown = [one for one in found if one.context is None]
    together = by(known, lambda one: (one.context or 0, limit_text(one), one.at_least))
    parts = [
        f"{'at least ' if at_least else ''}{spaced(tokens)} tokens with {names(some)} ({limit})"
        for (tokens, limit, at_least), some in sorted(together.items(), reverse=True)
    ]
    parts += [f"not known for {names(unknown)}"] if unknown else []
    return f"{capital('; '.join(parts) or 'not asked')}."


def room_text(advice: Advice) -> str:
    """`in 4.0 GiB beside the weights`; "" where that is not known."""
    budget = advice.inquiry.memory_bytes
    return "" if budget is None else f"in {size_text(budget)}{beside_weights(advice)}"


def limit_text(one: Longest) -> str:
    """`memory is the limit, by a wall that was found`."""
    by_wall = one.found_by == "wall" and one.limit in ("memory", "unknown")
    return LIMITS[one.limit] + (", by a wall that was found" if by_wall else "")


def _sequences(advice: Advice) -> Iterator[str]:
    """`Beside the weights fit the keys and values of 9 sequences of 8,192 tokens (4 if paged)`"""
    left = advice.inquiry.left_bytes
    kept = "keys, values and states" if advice.inquiry.state_bytes else "keys and values"
    for one in advice.sequences if left is None or left >= 0 else ():
        if one.fit is not None:
            paged = one.fit if one.fit_paged is None else one.fit_paged
            pool = "" if paged == one.fit else f" ({spaced(paged)} if paged)"
            yield (
                f"Beside the weights fit the {kept} of {spaced(one.fit)} sequences of"
                f" {spaced(one.context)} tokens{pool}, without what attention itself takes."
            )


def _unknown(advice: Advice) -> Iterator[str]:
    for why, some in by(advice.not_measured, lambda asked: asked.why).items():
        layers = [f"{plural(asked.count, 'layer')} of {asked.layer}" for asked in some]
        yield f"Not measured: {'; '.join(layers)}: {why}."
    for what, count in advice.inquiry.others.items():
        state = advice.inquiry.states.get(what, 0)
        size = "of unknown size" if state is None else f"of {size_text(state)}"
        keeps = f", each with a state {size} a sequence" if state != 0 else ""
        yield f"Not measured: {plural(count, 'layer')} of {what}{keeps}: no softmax attention."
    own = [one for one in advice.inquiry.implementations if one.own]
    if own:
        pairs = list_text([f"{one.backend} for {one.name}" for one in own])
        yield (
            f"attnbench's own backends stand for transformers' functions ({pairs});"
            " flash_attention_2 is left out."
        )
    inquiry = advice.inquiry
    if inquiry.weight_bytes is not None:
        yield f"Weights: {size_text(inquiry.weight_bytes)}; {inquiry.weights_words}."
    elif not inquiry.beside_weights:
        yield (
            f"The bytes of the weights are not known and come on top: {inquiry.weights_words}. The"
            " folder that has the safetensors files beside config.json tells them."
        )
    if inquiry.dtype_guess:
        yield f"The dtype {inquiry.dtype} is a guess: {inquiry.dtype_guess}."
    if advice.missing:
        yield f"To measure what is missing: {measure_command(advice)}"


def measure_command(advice: Advice) -> str:
    """The same question with --measure."""
    return f"attnbench advise {' '.join(map(quote, advice.inquiry.arguments))} --measure"


def _queries(decision: Decision) -> str:
    """The option for a number of tokens that are computed at once, where the phase has one."""
    if decision.phase not in ("chunk", "verify"):
        return ""
    problems = (cell.asked.problem for cell in decision.choices[0].cells)
    return f" --queries {max(one['seq_len'] for one in problems if one is not None)}"


def run_commands(advice: Advice) -> Iterator[str]:
    """What measures each number again."""
    asked = advice.inquiry
    backends = ",".join(one.backend for one in asked.implementations)
    tp = f" --tp {asked.tp}" if asked.tp > 1 else ""
    for decision in advice.decisions:
        cached = asked.device == "cpu" and decision.phase not in ("prefill", "training")
        cold = " --set plan.caches=cold" if cached else ""
        if decision.choices:
            yield (
                f"attnbench run --model {quote(asked.config)} --phase {decision.phase}"
                f"{_queries(decision)} --seq-len {decision.context} --batch {asked.batch}"
                f" --dtype {asked.dtype}{tp} --backends {backends} --device {asked.device}{cold}"
            )
