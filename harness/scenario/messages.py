"""Pydantic's errors as lines for the user: place, field, what was found, what was wanted."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from ..cases.axes import ALIASES
from ..files.errors import BadInput, shown
from .document import Document, Keys, shown_word
from .fields import Axes, ExtraCase, Grid, Limits, Model, Plan, suggestion

MODELS: dict[Keys, type[BaseModel]] = {
    ("grid",): Grid,
    ("grid", "cpu"): Axes,
    ("grid", "cuda"): Axes,
    ("watch",): Axes,
    ("cases",): ExtraCase,
    ("plan",): Plan,
    ("limits",): Limits,
}
WANTED = {
    "bool_type": "true or false",
    "string_type": "text",
    "string_unicode": "valid text",
    "float_type": "a number",
    "int_type": "a whole number",
    "tuple_type": "a list",
    "dict_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "model_type": "a mapping of fields",
}
HOLDERS: tuple[Keys, ...] = (("grid",), ("limits",), ("plan",))
"""Whose fields are taken for fields of a scenario."""
SEVERAL = re.compile(r"[\w.+-]{1,20}(\s*,\s*[\w.+-]{1,20}){1,20}")
MOST_LINES = 20


def checked(
    model: type[Model], data: Any, document: Document, keys: Keys = (), of: str = "a scenario"
) -> Model:
    """What a document has at `keys`, as a model. Raises BadInput, a line for each mistake."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = [{**one, "loc": (*keys, *one["loc"])} for one in error.errors(include_url=False)]
        raise BadInput(*lines(found, document, model, of)) from None


def lines(
    errors: Iterable[Mapping[str, Any]],
    document: Document,
    top: type[BaseModel],
    of: str,
) -> list[str]:
    """One line per error, the first MOST_LINES of them. `of`: what the fields are fields of."""
    # Pydantic also calls a list too short if everything in it was refused.
    found = [error for error in errors if error["type"] != "too_short" or not error["input"]]
    found.sort(key=lambda error: position(_place(error, document)))
    # A misspelt required field is one mistake, not two.
    holders = {error["loc"][:-1] for error in found if error["type"] == "missing"}
    unknown = [error["loc"] for error in found if error["type"] == "extra_forbidden"]
    misspelt = {closest(keys, top) for keys in unknown[:MOST_LINES] if keys[:-1] in holders}
    found = [error for error in found if error["type"] != "missing" or error["loc"] not in misspelt]
    # Only what is shown is worded: looking for a close name takes a third of a millisecond.
    shown_lines = [line(error, document, top, of) for error in found[:MOST_LINES]]
    return first_lines(shown_lines, len(found))


def first_lines(found: Sequence[str], count: int = 0) -> list[str]:
    """The first MOST_LINES. `count`: how many there are if not all are in `found`."""
    more = max(count, len(found)) - MOST_LINES
    return [*found[:MOST_LINES], *([f"and {more} more; fix these first"] if more > 0 else [])]


def position(text: str) -> tuple[int, int]:
    """Line and column of the file:line:col that a text begins with; else (0, 0)."""
    match = re.match(r".*?:(\d+):(\d+)(?=:|$)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _place(error: Mapping[str, Any], document: Document) -> str:
    return document.place(error["loc"], of_key=error["type"] == "extra_forbidden")


def line(error: Mapping[str, Any], document: Document, top: type[BaseModel], of: str) -> str:
    keys: Keys = error["loc"]
    if error["type"] == "extra_forbidden":
        return unknown_field(keys, document, top, of)
    name, label = document.name(keys), document.label(keys)
    match error["type"]:
        case "missing":
            field = model_at(keys[:-1], top).model_fields[str(keys[-1])]
            said = " ".join((field.description or "a value").split())
            add = "" if label.startswith("--") else f" Add {name}"  # an option is named already
            return f"{label}missing; wanted: {said[0].lower()}{said[1:]}{add}"
        case "too_short":
            return f"{label}found an empty list; wanted at least one value"
        case "whole_message":
            return f"{label}{error['msg']}"
    return f"{label}found {shown(error['input'])}; {wanted(error)}{_brackets(keys, error['input'])}"


def _brackets(keys: Keys, value: Any) -> str:
    """What to say of the values of an axis that are written like those of an option."""
    several = isinstance(value, str) and SEVERAL.fullmatch(value) and keys[:1] == ("grid",)
    return f"; several values have brackets: [{value}]" if several else ""


def wanted(error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in ("choice", "literal_error"):
        expected = context.get("options") or re.findall(r"'([^']*)'", context["expected"])
        *others, last = expected
        return f"{suggestion(error['input'], expected)}wanted {', '.join(others)} or {last}"
    if kind in ("wanted", "value_error"):
        return f"wanted {error['msg']}"
    if kind == "too_long":
        return f"wanted at most {context['max_length']} of them"
    if kind == "string_too_long":
        return f"wanted at most {context['max_length']} characters"
    return f"wanted {WANTED.get(kind) or error['msg'].replace('Input should be ', 'a number ')}"


def unknown_field(keys: Keys, document: Document, top: type[BaseModel], of: str) -> str:
    """A field given by an option is shown with all fields: the user sees no neighbours of it."""
    place = document.place(keys, of_key=True)
    owner = document.name(keys[:-1])
    prefix = f"{owner}." if owner else ""
    close = _inside(keys) or closest(keys, top)
    meant = ".".join(str(key) for key in close[len(keys) - 1 :])
    hint = f"did you mean {prefix}{meant}?" if close != keys else ""
    if not hint or place.startswith("--set"):
        known = model_at(keys[:-1], top).model_fields
        hint += f"{' ' if hint else ''}there are: {', '.join(known)}"
    return f"{place}: {prefix}{shown_word(str(keys[-1]))}: not a field of {of}; {hint}"


def _inside(keys: Keys) -> Keys:
    """Where a field belongs that stands at the top: seq_len in grid, memory_gib in limits."""
    name = ALIASES.get(str(keys[0]), str(keys[0]))
    holders = [holder for holder in HOLDERS if name in MODELS[holder].model_fields]
    return (*holders[0], name) if holders and len(keys) == 1 else ()


def closest(keys: Keys, top: type[BaseModel]) -> Keys:
    """The existing field that an unknown one resembles most, or `keys` if none is close."""
    model = model_at(keys[:-1], top)
    known = [*model.model_fields, *(ALIASES if "heads" in model.model_fields else ())]
    close = get_close_matches(str(keys[-1]), known, n=1)
    return (*keys[:-1], close[0]) if close else keys


def model_at(keys: Keys, top: type[BaseModel]) -> type[BaseModel]:
    return MODELS.get(tuple(key for key in keys if isinstance(key, str)), top)
