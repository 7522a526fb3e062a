"""Advice to paste: which attn_implementation in which phase over which lengths, and in code."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ...harness.files.printable import spaced
from ..formatting import list_text
from .answer import Advice
from .asked import Inquiry, Phase
from .choices import Decision, decide

HALVINGS = 5  # of a context: the lengths at which `--measure` measures
VLLM = {
    **dict.fromkeys(("flash_attention_2", "flash_attention_3"), "FLASH_ATTN"),
    "flex_attention": "FLEX_ATTENTION",
}
"""Of `vllm serve --attention-backend`, where it runs the same kernel on a GPU."""
MAKERS = {"whisper": "AutoModelForSpeechSeq2Seq"}
"""Transformers' class that generates, where it is not AutoModelForCausalLM."""
NO_CHECKPOINT = "your folder of weights, or their name on the Hub"


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """One choice over a range of contexts, in tokens, both ends included.

    `decisions`: at the lengths in it for which there are times, shortest first. The choice of
    shorter ones is kept unless it is shown to be slower.
    """

    phase: Phase
    first: int
    last: int
    name: str
    decisions: Sequence[Decision]

    @property
    def confirmed(self) -> bool:
        """Whether every other that has a time is shown to be slower, or the same, everywhere."""
        return all(
            one.name_of_best == self.name and one.word_of_best == "fastest"
            for one in self.decisions
        )

    def lengths(self, *, fitted: bool) -> list[int]:
        """Those whose times are measured, or come from other lengths."""
        return [
            one.context
            for one in self.decisions
            if any(choice.fitted for choice in one.choices) == fitted
        ]


def ranges(advice: Advice) -> list[Range]:
    """By phase, shortest first. Only lengths count at which whatever has a time at the longest
    that was asked has one too, so that a choice never turns for want of a measurement.
    """
    return [one for phase in advice.inquiry.phases for one in _of_phase(advice, phase)]


def _of_phase(advice: Advice, phase: Phase) -> Iterator[Range]:
    asked = [one for one in advice.decisions if one.phase == phase and one.best is not None]
    if not asked:
        return
    inquiry, times = advice.inquiry, advice.memory.times
    lengths = {one.context >> step for one in asked for step in range(HALVINGS)} - {0}
    every = [decide(inquiry, advice.rows, phase, n, times) for n in sorted(lengths)]
    lacking = {one.name for one in asked[-1].missing}
    known = [
        one
        for one in every
        if one.best is not None and {other.name for other in one.missing} <= lacking
    ]
    found: Range | None = None
    for one in known:
        if found is None or _is_slower(found.name, one):
            if found is not None:
                yield replace(found, last=one.context - 1)
            first = one.context if found is not None else 1
            found = Range(phase=phase, first=first, last=0, name=one.name_of_best, decisions=())
        found = replace(found, last=one.context, decisions=[*found.decisions, one])
    if found is not None:
        yield found


def _is_slower(name: str, decision: Decision) -> bool:
    """Whether it is shown to be slower than the fastest there, or does not run."""
    choice = next(one for one in decision.choices if one.implementation.name == name)
    if choice.against is None:
        return choice.total_ms is None
    return choice.against.word == "more"


def turns(advice: Advice) -> Iterator[str]:
    """Where the choice turns, in sentences."""
    for one, two in pairwise(ranges(advice)):
        if one.phase == two.phase:
            before, after = one.decisions[-1].context, two.first
            yield (
                f"In {one.phase} the choice turns between {spaced(before)} and {spaced(after)}"
                f" tokens, from {one.name} to {two.name}."
            )


def policy(advice: Advice) -> dict[str, Any]:
    """As JSON; docs/format.md describes it."""
    found = ranges(advice)
    names = list(dict.fromkeys(one.name for one in found))
    option = VLLM.get(names[0]) if len(names) == 1 and advice.inquiry.device == "cuda" else None
    return {
        "ranges": [
            {
                "phase": one.phase,
                "from_tokens": one.first,
                "to_tokens": one.last,
                "attn_implementation": one.name,
                "confirmed": one.confirmed,
                "measured_tokens": one.lengths(fitted=False),
                "fitted_tokens": one.lengths(fitted=True),
                "not_measured": [other.name for other in one.decisions[-1].missing],
            }
            for one in found
        ],
        "python": python(advice.inquiry, found),
        "vllm": None if option is None else f"--attention-backend {option}",
        "not_measured": "any engine, lengths beyond these, and other models, batches and devices",
    }


def python(asked: Inquiry, found: Sequence[Range]) -> list[str]:
    """Lines for transformers: the model with its first choice, and what to call before another."""
    if not found:
        return []
    generates = set(asked.phases) - {"prefill", "training"}
    maker = MAKERS.get(asked.model_type, "AutoModelForCausalLM") if generates else "AutoModel"
    place = json.dumps(asked.checkpoint or NO_CHECKPOINT)
    given = f"{place}, attn_implementation={json.dumps(found[0].name)}"
    lines = [f"from transformers import {maker}", f"model = {maker}.from_pretrained({given})"]
    for name in dict.fromkeys(one.name for one in found):
        of_name = [one for one in found if one.name == name]
        where = list_text(
            [f"{one.phase} of {spaced(one.first)} to {spaced(one.last)} tokens" for one in of_name]
        )
        if name == found[0].name:
            lines[1] += f"  # {where}"
        else:
            lines.append(f"model.set_attn_implementation({json.dumps(name)})  # before {where}")
    return lines
