"""Cases that name a model, {model: llama-3-8b, seq_len: 8k}, become the shapes of its attention.

It is done before anything else is checked, so that a run keeps shapes and not a name: it can be
resumed where the model's configuration is not.
"""

from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError

from ...impls.problem import AXES, Problem
from ..files.errors import BadInput, shown
from ..models.layers import Model
from ..models.questions import PHASES, Phase, questions
from ..models.resolve import model_of
from .document import Document, Fields, Items, Keys
from .fields import as_size

FIELDS = ("model", "phase", "tp")

FROM_PROBLEM = tuple(name for name in AXES if name not in ("batch", "dtype", "scope"))


def expand_models(document: Document) -> None:
    """Replace each case with `model` by one for each distinct attention of it. Raises BadInput.

    The new cases' places are those of the cases that they came from.
    """
    cases = document.data.get("cases")
    if not isinstance(cases, Items) or not any(_names_model(case) for case in cases):
        return
    expanded = Items()
    problems: list[str] = []
    for index, case in enumerate(cases):
        try:
            new = _cases_of(document, index, case) if _names_model(case) else [case]
        except BadInput as error:
            problems += error.problems
            continue
        for one in new:
            expanded.at[len(expanded)] = document.place(("cases", index))
            expanded.append(one)
    if problems:
        raise BadInput(*problems)
    document.data["cases"] = expanded


def _names_model(case: Any) -> bool:
    return isinstance(case, Fields) and "model" in case


def _cases_of(document: Document, index: int, case: Fields) -> list[Fields]:
    keys: Keys = ("cases", index)

    def bad(name: str, text: str) -> BadInput:
        return BadInput(f"{document.label((*keys, name))}{text}")

    phase = case.get("phase", "prefill")
    if phase not in PHASES:
        raise bad("phase", f"found {shown(phase)}; wanted one of {', '.join(PHASES)}")
    if wrong := [name for name in case if name in FROM_PROBLEM and name != "seq_len"]:
        raise bad(wrong[0], "the model says it; remove it, or name no model")
    parts = _size(case.get("tp", 1), bad, "tp")
    try:
        model = _named(case["model"], document.origin).divided(parts)
    except BadInput as error:
        raise BadInput(*(f"{document.place(keys)}: {one}" for one in error.problems)) from None
    lengths = {layer.seq_len for layer, _ in model.attention()}
    if "seq_len" in case:
        context = _size(case["seq_len"], bad, "seq_len")
    elif lengths and 0 not in lengths:
        context = max(lengths)
    else:
        raise bad("seq_len", f"not given; wanted the context of {model.name}, in tokens")
    if model.max_context is not None and context > model.max_context:
        raise bad("seq_len", f"{context}; wanted at most the {model.max_context} of {model.name}")
    own = {name: value for name, value in case.items() if name not in (*FIELDS, "seq_len")}
    found = [Fields(axes_of(problem), **own) for problem in _problems(model, phase, context, bad)]
    for one in found:
        one.at, one.keys_at = case.at, case.keys_at
    return found


def _named(name: Any, origin: str) -> Model:
    """A relative path starts from the scenario's folder."""
    if not isinstance(name, str) or not name:
        raise BadInput(f"model: {shown(name)}; wanted a name or a path of a model")
    beside = Path(origin).parent / name
    return model_of(str(beside) if "/" in name and beside.exists() else name)


def _size(value: Any, bad: Any, name: str) -> int:
    try:
        return int(as_size(value))
    except PydanticCustomError as error:
        raise bad(name, f"found {shown(value)}; wanted {error.message()}") from None


def _problems(model: Model, phase: Phase, context: int, bad: Any) -> list[Problem]:
    asked = list(questions(model, phase, context=context, batch=1, dtype="fp32"))
    if whys := [question.why for question in asked if question.problem is None]:
        raise bad("model", f"{model.name}: {whys[0]}; wanted a model whose attention is measured")
    found = [question.problem for question in asked if question.problem is not None]
    if not found:
        other = ", ".join(model.others())
        has = f"only {other}, which is not measured" if other else f"no attention in phase {phase}"
        raise bad("model", f"{model.name} has {has}; wanted a model or a phase with attention")
    return list(dict.fromkeys(found))


def axes_of(problem: Problem) -> dict[str, Any]:
    """The axes of a problem; causal and mask always, or a grid's own would hold."""
    values = {name: getattr(problem, name) for name in FROM_PROBLEM}
    always = ("causal", "mask")
    return {name: value for name, value in values.items() if value or name in always}
