"""Cases that name a model, {model: llama-3-8b, seq_len: 8k}, become the shapes of its attention.

It is done before anything else is checked, so that a run keeps shapes and not a name: it can be
resumed where the model's configuration is not.
"""

from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field

from ...impls.problem import AXES, Problem
from ..cases.case import ALIASES
from ..files.errors import BadInput
from ..models.layers import Model
from ..models.questions import Phase, questions
from ..models.resolve import model_of
from .changes import BESIDE_MODEL
from .check import checked
from .document import Document, Fields, Items, Keys
from .fields import Size, Strict


class ModelCase(Strict):
    """What a case says that names a model, beside other axes of the problem."""

    model: str = Field(min_length=1)
    """A model whose attention is measured: a name from `attnbench list models`, a config.json of
    Hugging Face or its folder. It gives heads, widths, causal, mask and window."""
    phase: Phase = "prefill"
    """With model: prefill computes seq_len tokens at once, chunk the last 512 of them and verify
    the last 5 (or queries), decode one token after so many, training all with gradients."""
    queries: Size | None = None
    """With model: tokens that phase chunk or verify computes."""
    tp: Size = 1
    """With model: how many devices share its heads (tensor parallelism)."""
    seq_len: Size | None = Field(default=None, validation_alias=AliasChoices("seq_len", "N"))


FROM_PROBLEM = tuple(name for name in AXES if name not in BESIDE_MODEL)


def expand_models(document: Document) -> None:
    """Replace each case with `model` by one for each distinct attention of it. Raises BadInput.

    The new cases' places are those of the cases that they came from.
    """
    expanded = Items()
    problems: list[str] = []
    for index, case in enumerate(document.data["cases"]):
        try:
            names_model = isinstance(case, Fields) and "model" in case
            new = _cases_of(document, index, case) if names_model else [case]
        except BadInput as error:
            problems += error.problems
            continue
        place = document.place(("cases", index))
        expanded.at |= {len(expanded) + more: (place, place) for more in range(len(new))}
        expanded += new
    if problems:
        raise BadInput(*problems)
    document.data["cases"] = expanded


def _cases_of(document: Document, index: int, case: Fields) -> list[Fields]:
    keys: Keys = ("cases", index)

    def bad(name: str, text: str) -> BadInput:
        return BadInput(f"{document.label((*keys, name))}{text}")

    given = {name: case[name] for name in (*ModelCase.model_fields, "N") if name in case}
    own = {name: value for name, value in case.items() if name not in given}
    for name in own:
        if ALIASES.get(name, name) in (*FROM_PROBLEM, "head_dim"):
            raise bad(name, "the model says it; remove it, or name no model")
    asked = checked(ModelCase, given, document, keys)
    beside = Path(document.origin).parent / asked.model  # from the scenario's folder
    try:
        model = model_of(str(beside) if "/" in asked.model and beside.exists() else asked.model)
        model = model.divided(asked.tp)
    except BadInput as error:
        raise BadInput(*(f"{document.place(keys)}: {one}" for one in error.problems)) from None
    context = asked.seq_len
    lengths = {layer.seq_len for layer, _ in model.attention()}
    if context is None and lengths and 0 not in lengths:
        context = max(lengths)
    elif context is None:
        raise bad("seq_len", f"not given; wanted the context of {model.name}, in tokens")
    if model.max_context is not None and context > model.max_context:
        raise bad("seq_len", f"{context}; wanted at most the {model.max_context} of {model.name}")
    found = [Fields(axes_of(problem), **own) for problem in _problems(model, asked, context, bad)]
    for one in found:
        one.at = case.at
    return found


def _problems(model: Model, case: ModelCase, context: int, bad: Any) -> list[Problem]:
    phase, queries = case.phase, case.queries or 0
    if queries and phase not in ("chunk", "verify"):
        raise bad("queries", f"{queries}; wanted phase chunk or verify, which compute so many")
    given = {"context": context, "batch": 1, "queries": queries}
    asked = list(questions(model, phase, dtype="fp32", **given))
    if whys := [question.why for question in asked if question.problem is None]:
        raise bad("model", f"{model.name}: {whys[0]}; wanted a model whose attention is measured")
    found = [question.problem for question in asked if question.problem is not None]
    if not found:
        other = ", ".join(layer.what for layer, _ in model.others())
        has = f"only {other}, which is not measured" if other else f"no attention in phase {phase}"
        raise bad("model", f"{model.name} has {has}; wanted a model or a phase with attention")
    return list(dict.fromkeys(found))


def axes_of(problem: Problem) -> dict[str, Any]:
    """The axes of a problem; causal and mask always, or a grid's own would hold."""
    values = {name: getattr(problem, name) for name in FROM_PROBLEM}
    always = ("causal", "mask")
    return {name: value for name, value in values.items() if value or name in always}
