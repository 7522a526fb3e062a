"""Prepare a document for the models: axes as fields, and the user's changes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

from ...impls.discovery.names import separated
from ..cases.case import ALIASES
from ..files.errors import BadInput, option, shown
from .document import (
    SHORT,
    Document,
    Fields,
    Items,
    Keys,
    option_in,
    parse_yaml,
    placeless,
    value_at,
)
from .fields import DeviceKind

SEPARATOR = r"\s*,\s*|\s+"
OF_SCENARIO = ("backends", "baseline")
BESIDE_MODEL = ("batch", "dtype", "scope")
"""Axes that no model gives."""


class Change(NamedTuple):
    """A field to set: `path`, such as limits.memory_gib, a value, and how it was asked for."""

    path: str
    value: Any
    label: str


def axes_document(axes: Mapping[str, Any], *, find_wall: bool) -> Document:
    """A scenario from fields and axes, each a text as in a shell or a value. Raises BadInput."""
    data = Fields(name="grid", question="How do these cases compare?", grid=Fields())
    if find_wall:
        question = "How long a sequence fits in memory?"
        data.update(name="wall", question=question, find_wall=True)
    data.at = options_at("backends")
    data["grid"].at = options_at("seq_len", "heads")
    d_model = f"{option('d_model')} or {option('head_dim')}"
    data["grid"].at["d_model"] = d_model, d_model
    document = Document(data, "command line")
    for name, given in axes.items():
        if name == "backends" and isinstance(given, str):
            document.replace((name,), Items(separated(given)), label(name, given))
        elif name in OF_SCENARIO:
            document.replace((name,), placeless(given), label(name, given))
        elif "model" not in axes or name in BESIDE_MODEL:
            document.replace(("grid", name), values_of(name, given), label(name, given))
    if "model" in axes:
        document.replace(("cases",), model_cases(axes), label("model", axes["model"]))
    elif "head_dim" in axes:
        set_head_dim(document, label("head_dim", axes["head_dim"]))
    return document


def options_at(*names: str) -> dict[str | int, tuple[str, str]]:
    return {name: (option(name), option(name)) for name in names}


def model_cases(axes: Mapping[str, Any]) -> Items:
    """A case for each model and length, with all that is given beside them."""
    beside = {
        name: value_of(name, value)
        for name, value in axes.items()
        if name not in (*OF_SCENARIO, *BESIDE_MODEL, "model", "seq_len")
    }
    lengths: list[dict[str, Any]] = [{}]
    if "seq_len" in axes:
        lengths = [{"seq_len": one} for one in values_of("seq_len", axes["seq_len"])]
    models = axes["model"]
    if isinstance(models, str):
        models = re.split(r"\s*,\s*", models.strip())
    cases = Items(Fields(beside, model=model, **length) for model in models for length in lengths)
    for case in cases:
        case.at = options_at(*beside, "seq_len")
    return cases


def values_of(name: str, given: Any) -> Any:
    """The values of an axis, from a text with commas or spaces between them. Raises BadInput."""
    if isinstance(given, bool):
        return given
    if isinstance(given, str):
        text = ",".join(re.split(SEPARATOR, given.strip()))
        return parse_yaml(f"[{text}]", label(name, given)).data
    return Items(value_of(name, one) for one in (given if isinstance(given, Sequence) else [given]))


def value_of(name: str, given: Any) -> Any:
    """A value as it is, or from its text. Raises BadInput."""
    if isinstance(given, str):
        return parse_yaml(given, label(name, given)).data
    return placeless(given)


def label(name: str, given: Any) -> str:
    """The option as the user gave it."""
    if isinstance(given, bool):
        return option(name)
    listed = isinstance(given, Sequence) and not isinstance(given, str)
    return option(name, one_line(",".join(map(str, given)) if listed else str(given)))


def one_line(text: str) -> str:
    return text if text.isprintable() and len(text) <= 100 else shown(text)


def set_head_dim(document: Document, given: str) -> None:
    """The width of a head, of queries, keys and values alike. Raises BadInput.

    Without d_model, the model is as wide as its heads together.
    """
    grid = document.data["grid"]
    widths = grid.pop("head_dim")
    heads = grid.get("heads", ()) if "d_model" not in grid else ()
    if len(widths) != 1:
        raise BadInput(f"{given}: {len(widths)} widths; wanted one; measure one after the other")
    if len(heads) > 1:
        raise BadInput(
            f"{given}: {len(heads)} numbers of heads leave the model's width open; add"
            f" {option('d_model')}"
        )
    if heads and all(type(number) is int and number > 0 for number in (*heads, *widths)):
        document.replace(("grid", "d_model"), heads[0] * widths[0], given)
        return
    for axis in ("d_k", "d_v"):
        document.replace(("grid", axis), widths, given)


def apply(document: Document, changes: Sequence[Change]) -> None:
    """Set fields; whether they exist is checked later.

    The order does not count: a field as a whole, such as plan, is set before its parts. Raises
    BadInput, also for a field that two of them set.
    """
    problems: list[str] = []
    labels: dict[Keys, str] = {}
    for change in sorted(changes, key=lambda one: one.path.count(".")):
        try:
            other = labels.setdefault(keys_of(change), change.label)
            if other is not change.label:
                raise BadInput(
                    f"{change.label}: {other} already sets {change.path}; wanted it once; remove"
                    " one"
                )
            apply_one(document, change)
        except BadInput as error:
            problems += error.problems
    if problems:
        raise BadInput(*problems)


def keys_of(change: Change) -> Keys:
    """Where it goes, by our names."""
    *above, last = change.path.split(".")
    return (*above, ALIASES.get(last, last) if above[:1] in (["grid"], ["watch"]) else last)


def read_change(text: str) -> Change:
    """What --set asks for: field=value, the value in YAML. Raises BadInput."""
    given = option("set", one_line(text))
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise BadInput(
            f"{given}: not a change; wanted {option('set', 'field=value')}, for example"
            f" {option('set', 'limits.memory_gib=2')}"
        )
    return Change(path, parse_yaml(value, given).data, given)


def apply_one(document: Document, change: Change) -> None:
    """Raises BadInput for a field of what has none."""
    place, keys = change.label, keys_of(change)
    if not all(keys):
        raise BadInput(
            f"{place}: {shown(change.path)}: not a field; wanted a path such as grid.seq_len"
        )
    if len(keys) > 1 and keys[0] == "plan" and isinstance(document.data.get("plan"), str):
        document.replace(("plan",), Fields(like=document.data["plan"]), document.place(("plan",)))
    for depth in range(1, len(keys)):
        inner = value_at(document.data, above := keys[:depth])
        if inner is None:
            document.replace(above, Fields(), place)
        elif not isinstance(inner, dict):
            whole = f"{'.'.join(map(str, above))}=..."
            use = option("set", whole) if option_in(place) == "set" else whole
            raise BadInput(
                f"{place}: {whole[:-4]} has no fields of its own; wanted one value for all of it;"
                f" use {use}"
            )
    document.replace(keys, placeless(change.value), place)
    if keys[:-1] == ("grid",):  # it holds on every kind of device, also where the file has others
        for device in get_args(DeviceKind):
            special = value_at(document.data, ("grid", device))
            for name in (keys[-1], SHORT.get(keys[-1])) if isinstance(special, dict) else ():
                special.pop(name, None)
