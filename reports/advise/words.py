"""Advice in sentences: what fits, what to use, what is not known, and what tells more."""

from collections.abc import Iterator, Sequence
from shlex import quote

from ...harness.files.printable import spaced
from ..data.row_groups import by
from ..formatting import list_text, plural, size_text
from ..words import NOT_DECIDED
from .answer import Advice
from .choices import Decision

LIMITS = {
    "weights": "the weights do not fit",
    "memory": "memory",
    "model": "model",
    "unknown": "not known beyond",
    "none": "no limit found",
}
VERBS = {
    "prefill": "prefill of",
    "chunk": "a chunk at the end of",
    "decode": "decode after",
    "verify": "verification at the end of",
    "training": "a training step on",
}
WARM = (
    "Decode on a CPU: each call read the same keys and values, which may have stayed in caches; a"
    " model reads those of all layers in turn. In a small Llama, run end to end, the attention of a"
    " step took 2.1 times as long."
)


def headline(advice: Advice) -> str:
    """Whether the model fits, and what to use."""
    return f"{room(advice)} {use(advice)}"


def room(advice: Advice) -> str:
    """`llama-3-8b fits its full 8 192-token context in 24 GiB with sdpa; weights take 15 GiB in
    bf16.`
    """
    asked, memory = advice.inquiry, size_text(advice.inquiry.memory_bytes)
    weights, left = size_text(asked.weight_bytes), asked.left_bytes
    stored = asked.weights_in + (f", on each of {asked.tp} devices" if asked.tp > 1 else "")
    if left is not None and left < 0:
        return (
            f"{asked.model} does not fit in {memory}: its weights take {weights} {stored}, so"
            f" {spaced(asked.devices_for_weights or 0)} devices of {memory} or more."
        )
    if not memory:
        return "The size of the memory is not known: give --memory-gib."
    if asked.beside_weights:
        place, ending = f"{memory} beside its weights", ""
    elif left is None:
        place, ending = memory, "; its weights are extra, of unknown size"
    else:
        place, ending = memory, f"; weights take {weights} {stored}"
    phase = asked.phases[0]
    known = [one for one in advice.longest if one.phase == phase and one.context is not None]
    used = {of.name_of_best for of in advice.decisions if of.phase == phase}
    best = max(
        known,
        key=lambda one: (one.attn_implementation in used, one.context or 0, -one.total_bytes),
        default=None,
    )
    if best is None:
        return f"The longest context of {asked.model} for {phase} in {place} is not known{ending}."
    tokens = f"{'at least ' if best.at_least else ''}{spaced(best.context or 0)}"
    fits = f"{tokens if best.context else 'no'} tokens of {phase}"
    if best.limit == "model":
        fits = f"its full {tokens}-token context{' in training' if phase == 'training' else ''}"
    why = "" if best.limit in ("model", "memory") else f" ({LIMITS[best.limit]})"
    return f"{asked.model} fits {fits} in {place} with {best.attn_implementation}{why}{ending}."


def use(advice: Advice) -> str:
    """One sentence: what to use, and whether that is clear."""
    model = advice.inquiry.model
    decided = [decision for decision in advice.decisions if decision.best is not None]
    if not advice.can_be_measured:
        return f"attnbench cannot measure the attention of {model} here."
    if not decided and advice.rows.runs:
        return f"Nothing has been timed yet for {model} on this device; its memory was measured."
    if not decided:
        return (
            f"Nothing has been timed yet for {model} on this device: the memory below is computed."
        )
    light = [{choice.implementation.name for choice in one.as_light} for one in decided]
    wins = [one.name_of_best for one in decided]
    common = max(sorted(set.intersection(*light)), key=wins.count, default=None)
    uses = {common: decided} if common else by(decided, lambda one: one.name_of_best)
    return f"Use attn_implementation={'; '.join(_use(str(name), uses[name]) for name in uses)}."


def _use(name: str, decisions: Sequence[Decision]) -> str:
    """`"sdpa" for prefill of 1 024 tokens (faster than eager)`: and whether that is clear."""
    parts = [f"{named(decision)} ({_how_clear(name, decision)})" for decision in decisions]
    return f'"{name}" for {list_text(parts)}'


def _how_clear(name: str, decision: Decision) -> str:
    """Against which others this is decided, and against which not."""
    if decision.choices[0].implementation.name != name:  # it is as good as the fastest
        return _against_fastest(name, decision)
    others = [one for one in decision.choices if one.against]
    some = by(others, lambda one: one.against.word if one.against else "")
    texts = [
        f"{said} {list_text([one.implementation.name for one in some[word]])}"
        for word, said in (("more", "faster than"), (NOT_DECIDED, "not confirmed against"))
        if word in some
    ]
    return "; ".join(texts) or "none is clearly faster"


def _against_fastest(name: str, decision: Decision) -> str:
    """`as fast as eager, but with 10 MiB of peak memory instead of 336 MiB`."""
    first = decision.choices[0]
    mine = next(one for one in decision.choices if one.implementation.name == name)
    is_open = mine.against is not None and mine.against.word == NOT_DECIDED
    said = "not confirmed against" if is_open else "as fast as"
    sizes = [size_text(one.peak_bytes) for one in (mine, first)]
    differ = f", but with {sizes[0]} of peak memory instead of {sizes[1]}" if all(sizes) else ""
    return f"{said} {first.implementation.name}{differ if sizes[0] != sizes[1] else ''}"


def named(decision: Decision) -> str:
    """`prefill of 8 192 tokens`."""
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
    rows = f"; {whose}, not an inference engine; rows of {plural(len(runs), 'run')}{timed}"
    return (
        f"{asked.model} ({asked.model_type}), {asked.dtype}{guess}{cache}, batch {asked.batch}{tp},"
        f" on {asked.device_name}{rows if runs else ''}; memory: {asked.memory_from}"
    )


def place(advice: Advice, word: str) -> str:
    """` in 4 GiB beside the weights`; "" where it is not known how much memory there is."""
    budget = size_text(advice.inquiry.memory_bytes)
    beside = " beside the weights" if advice.inquiry.weight_bytes is None else ""
    return f" {word} {budget}{beside}" if budget else ""


# ---- beside the tables ---------------------------------------------------------------------------


def beside_tables(advice: Advice) -> Iterator[str]:
    """What no table says: cautions, and what is not known."""
    asked = advice.inquiry
    cautions = (f"config.json: {one}" for one in asked.cautions)
    yield from (f"Caution: {one}." for one in (*cautions, *advice.traps))
    count, timed = advice.disturbed
    if count:
        yield (
            f"Caution: {count} of these {plural(timed, 'time')} were measured while other work"
            " competed for the cores. Measure again on an idle machine; the newest rows count."
        )
    best = [cell for one in advice.decisions if one.best for cell in one.best.cells]
    notes = (note for cell in best for note in (cell.rate.notes if cell.rate else ()))
    yield from (f"Decode: {note}." for note in dict.fromkeys(notes))
    if any(cell.is_warm for cell in advice.cells):
        yield WARM
    yield from _sequences(advice)
    yield from asked.notes
    yield from _unknown(advice)
    yield not_included(advice)


def _sequences(advice: Advice) -> Iterator[str]:
    """`The KV cache of 9 sequences of 8 192 tokens fits beside the weights (paged: 4).`"""
    kept = "KV cache and states" if advice.inquiry.state_bytes else "KV cache"
    fits = "fit" if advice.inquiry.state_bytes else "fits"
    for one in advice.sequences if (advice.inquiry.left_bytes or 0) >= 0 else ():
        if one.fit is not None:
            paged = one.fit if one.fit_paged is None else one.fit_paged
            pool = "" if paged == one.fit else f" (paged: {spaced(paged)})"
            yield (
                f"The {kept} of {spaced(one.fit)} sequences of {spaced(one.context)} tokens"
                f" {fits} beside the weights{pool}."
            )


def _unknown(advice: Advice) -> Iterator[str]:
    asked = advice.inquiry
    for why, some in by(advice.not_measured, lambda one: one.why).items():
        layers = [f"{plural(one.count, 'layer')} of {one.layer}" for one in some]
        yield f"Not measured: {'; '.join(layers)}: {why}."
    for what, count in asked.others.items():
        state = asked.states.get(what, 0)
        size = "of unknown size" if state is None else f"of {size_text(state)}"
        keeps = f", each with a state {size} a sequence" if state != 0 else ""
        yield f"Not measured: {plural(count, 'layer')} of {what}{keeps}: not softmax attention."
    if own := [f"{one.backend} for {one.name}" for one in asked.implementations if one.own]:
        yield (
            f"transformers' functions were not called: attnbench's backends stand for them"
            f" ({list_text(own)}); flash_attention_2 is left out."
        )
    if asked.weight_bytes is not None:
        yield f"Weights: {size_text(asked.weight_bytes)}; {asked.weights_words}."
    elif not asked.beside_weights:
        yield (
            f"Weights: not known, and not counted: {asked.weights_words}. A folder with the"
            " safetensors files beside config.json gives their size."
        )
    if asked.dtype_guess:
        yield f"dtype: {asked.dtype}, a guess: {asked.dtype_guess}."
    if any(one.missing for one in advice.decisions):
        yield f"To measure what is missing: {measure_command(advice)}"


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


# ---- commands ------------------------------------------------------------------------------------


def measure_command(advice: Advice) -> str:
    """The same question with --measure."""
    return f"attnbench advise {' '.join(map(quote, advice.inquiry.arguments))} --measure"


def run_commands(advice: Advice) -> Iterator[str]:
    """What measures each number again."""
    asked = advice.inquiry
    backends = ",".join(one.backend for one in asked.implementations)
    tp = f" --tp {asked.tp}" if asked.tp > 1 else ""
    for one in advice.decisions:
        problems = (
            [cell.asked.problem or {} for cell in one.choices[0].cells] if one.choices else []
        )
        few = max((int(problem["seq_len"]) for problem in problems), default=0)
        queries = f" --queries {few}" if one.phase in ("chunk", "verify") else ""
        cached = asked.device == "cpu" and one.phase not in ("prefill", "training")
        cold = " --set plan.caches=cold" if cached else ""
        if problems:
            yield (
                f"attnbench run --model {quote(asked.config)} --phase {one.phase}"
                f"{queries} --seq-len {one.context} --batch {asked.batch}"
                f" --dtype {asked.dtype}{tp} --backends {backends} --device {asked.device}{cold}"
            )
