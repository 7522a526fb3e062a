"""Pydantic's findings as lines for the user: place, field, what was found, what was wanted."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel

from ..errors import shown
from .fields import ALIASES, Axes, ExtraCase, Grid, Limits, Plan
from .yaml_document import Document, Keys, key_word

MODELS: dict[Keys, type[BaseModel]] = {
    ("grid",): Grid,
    ("grid", "cpu"): Axes,
    ("grid", "cuda"): Axes,
    ("cases",): ExtraCase,
    ("plan",): Plan,
    ("limits",): Limits,
}
MOST_LINES = 20
CLOSE = 0.7  # gpu is no misspelt cpu


def lines(
    errors: Iterable[Mapping[str, Any]], document: Document, top: type[BaseModel]
) -> list[str]:
    """One line per error, the first MOST_LINES of them."""
    # Pydantic also calls a list too short when all that is in it was refused.
    told = [error for error in errors if error["type"] != "too_short" or not error["input"]]
    # A misspelt field that is required is one mistake, not two.
    misspelt = {meant(error["loc"], top) for error in told if error["type"] == "extra_forbidden"}
    told = [error for error in told if error["type"] != "missing" or error["loc"] not in misspelt]
    return first_lines([line(error, document, top) for error in told])


def meant(keys: Keys, top: type[BaseModel]) -> Keys:
    """The field of the same place that an unknown one resembles most; `keys` themselves where none
    does.
    """
    close = get_close_matches(str(keys[-1]), _fields(model_at(keys[:-1], top)), n=1)
    return (*keys[:-1], close[0]) if close else keys


def _fields(model: type[BaseModel]) -> list[str]:
    """The names that a user may write, aliases included."""
    return [*model.model_fields, *(ALIASES if "heads" in model.model_fields else ())]


def first_lines(found: list[str]) -> list[str]:
    more = len(found) - MOST_LINES
    return found if more <= 0 else [*found[:MOST_LINES], f"and {more} more; mend these first"]


def line(error: Mapping[str, Any], document: Document, top: type[BaseModel]) -> str:
    keys: Keys = error["loc"]
    if error["type"] == "extra_forbidden":
        return unknown_field(keys, document, top)
    place, name = document.place(keys), document.name(keys)
    label = f"{place}: {name}: " if name else f"{place}: "
    if error["type"] == "missing":
        model = model_at(keys[:-1], top)
        meaning = model.model_fields[str(keys[-1])].description or "a value"
        return f"{label}missing; wanted: {meaning} Add {name}"
    if error["type"] == "too_short":
        return f"{label}found an empty list; wanted at least one value"
    if error["type"] == "told":
        return f"{label}{error['msg']}"
    found = shown(error["input"])
    options = choices(error)
    if options:
        return (
            f"{label}found {found}; {suggestion(error['input'], options)}wanted"
            f" {', '.join(options[:-1])} or {options[-1]}"
        )
    return f"{label}found {found}; wanted {wanted(error)}"


def choices(error: Mapping[str, Any]) -> list[str]:
    if error["type"] == "choice":
        return list(error["ctx"]["options"])
    return (
        re.findall(r"'([^']*)'", error["ctx"]["expected"])
        if error["type"] == "literal_error"
        else []
    )


def wanted(error: Mapping[str, Any]) -> str:
    if error["type"] in ("wanted", "value_error"):
        return str(error["msg"])
    plain = {
        "bool_type": "true or false",
        "string_type": "text",
        "float_type": "a number",
        "int_type": "a whole number",
        "tuple_type": "a list",
        "dict_type": "a mapping of fields",
        "model_attributes_type": "a mapping of fields",
        "model_type": "a mapping of fields",
        "string_too_long": f"at most {error.get('ctx', {}).get('max_length')} characters",
        "string_unicode": "valid text",
    }
    return plain.get(error["type"]) or str(error["msg"]).replace("Input should be ", "a number ")


def suggestion(value: Any, known: Iterable[str]) -> str:
    close = (
        get_close_matches(value, list(known), n=1, cutoff=CLOSE) if isinstance(value, str) else []
    )
    return f"did you mean {close[0]}? " if close else ""


def unknown_field(keys: Keys, document: Document, top: type[BaseModel]) -> str:
    """A field given by flag has no neighbours that the user could look at, so there they are all
    named.
    """
    place = document.place(keys, of_key=True)
    parent, field = keys[:-1], str(keys[-1])
    model = model_at(parent, top)
    close = meant(keys, top)
    owner = document.name(parent)
    prefix = f"{owner}." if owner else ""
    hint = f"did you mean {prefix}{close[-1]}?" if close != keys else ""
    if not hint or place.startswith("--set"):
        hint += f"{' ' if hint else ''}there are: {', '.join(model.model_fields)}"
    return f"{place}: {prefix}{key_word(field)}: not a field of a scenario; {hint}"


def model_at(keys: Keys, top: type[BaseModel]) -> type[BaseModel]:
    return MODELS.get(tuple(key for key in keys if isinstance(key, str)), top)
