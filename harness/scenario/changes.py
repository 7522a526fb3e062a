"""Prepare a document for the models: options as fields, short axis names, the user's changes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...impls.discovery.names import separated
from ..cases.axes import ALIASES, AXES, VALUE_ALIASES
from ..files.errors import BadInput, shown
from .document import Document, Keys
from .yaml_text import parse_yaml

SEPARATOR = r"\s*,\s*|\s+"
GRID, WALL = "grid", "wall"
"""The names of scenarios that options give; runs of earlier versions are named `flags`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A field to set: `path`, such as limits.memory_gib, a value, and where it was asked for.

    `inner`: the places of what the value holds.
    """

    path: str
    value: Any
    place: str
    inner: Mapping[Keys, str] = field(default_factory=dict)


class OptionText(str):
    """A change as text, path=value, that another option than --set asks for.

    `place`: the option as it was given.
    """

    place: str

    def __new__(cls, text: str, place: str) -> "OptionText":
        made = super().__new__(cls, text)
        made.place = place
        return made


MODEL_OPTIONS = ("model", "phase", "tp", "seq_len")
SHAPE_OPTIONS = (
    "head_dim",
    *(name for name in AXES if name not in ("batch", "seq_len", "dtype", "scope")),
)
AXIS_HOLDERS: tuple[Keys, ...] = (("grid",), ("grid", "cpu"), ("grid", "cuda"), ("watch",))


def options_document(options: Mapping[str, str | bool], *, find_wall: bool) -> Document:
    """A scenario from the command line: field name to the text that was given. Raises BadInput."""
    top = ("backends", "baseline")
    data: dict[str, Any] = {"name": GRID, "question": "How do these cases compare?", "grid": {}}
    if find_wall:
        question = "How long a sequence fits in memory?"
        data |= {"name": WALL, "question": question, "find_wall": True}
    document = Document(data, "command line")
    for name in ("backends", "seq_len", "d_model", "heads"):
        document.values[(name,) if name in top else ("grid", name)] = option(name)
    document.values[("grid", "d_model")] = "--d-model or --head-dim"
    if "model" in options:
        data["cases"] = model_cases(options)
        document.values[("cases",)] = f"--model {one_line(str(options['model']))}"
        for index in range(len(data["cases"])):
            for name in MODEL_OPTIONS[1:]:
                document.values[("cases", index, name)] = option(name)
        options = {name: text for name, text in options.items() if name not in MODEL_OPTIONS}
    for name, text in options.items():
        keys: Keys = (name,) if name in top else ("grid", name)
        if name == "head_dim":
            continue
        if isinstance(text, bool):
            document.replace(keys, text, option(name))
            continue
        given = f"{option(name)} {one_line(text)}"
        value = text if name == "baseline" else separated(text) if name == "backends" else None
        document.replace(keys, listed(text, given) if value is None else value, given)
    if isinstance(width := options.get("head_dim"), str):
        add_head_dim(document, width)
    return document


def model_cases(options: Mapping[str, str | bool]) -> list[dict[str, Any]]:
    """A case for each model and length. Raises BadInput for an axis that the model gives."""
    if wrong := [name for name in options if name in SHAPE_OPTIONS]:
        raise BadInput(
            f"{option(wrong[0])}: the model says it; leave out {option(wrong[0])}, or --model"
        )
    fixed = {name: options[name] for name in ("phase",) if name in options}
    if isinstance(text := options.get("tp"), str):
        fixed["tp"] = yaml(text, f"--tp {one_line(text)}")
    lengths: list[dict[str, Any]] = [{}]
    if isinstance(text := options.get("seq_len"), str):
        lengths = [{"seq_len": one} for one in listed(text, f"--seq-len {one_line(text)}")]
    models = re.split(r"\s*,\s*", str(options["model"]).strip())
    return [{"model": model, **length, **fixed} for model in models for length in lengths]


def listed(text: str, given: str) -> Any:
    """The values of an option, with commas or spaces between them. Raises BadInput."""
    return yaml(f"[{','.join(re.split(SEPARATOR, text.strip()))}]", given)


def add_head_dim(document: Document, text: str) -> None:
    """The width of a head, of queries, keys and values alike. Raises BadInput.

    Without d_model, the model is as wide as its heads together.
    """
    given = f"{option('head_dim')} {one_line(text)}"
    grid, widths = document.data["grid"], listed(text, given)
    if len(widths) != 1:
        raise BadInput(f"{given}: {len(widths)} widths; wanted one; measure one after the other")
    heads = grid.get("heads")
    if "d_model" not in grid and heads is not None:
        numbers = [*heads, *widths]
        if len(heads) == 1 and all(type(number) is int and number > 0 for number in numbers):
            document.replace(("grid", "d_model"), heads[0] * widths[0], given)
            return
        if len(heads) > 1:
            raise BadInput(
                f"{given}: with {len(heads)} numbers of heads the width of the model is open;"
                " wanted --d-model too"
            )
    for axis in ("d_k", "d_v"):
        document.replace(("grid", axis), widths, given)


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def one_line(text: str) -> str:
    return text if text.isprintable() and len(text) <= 100 else shown(text)


def yaml(text: str, origin: str) -> Any:
    """A value as it is written in YAML: 2, [512, 1k], {like: quick}. Raises BadInput."""
    return parse_yaml(text, origin, lines=False).data


def add_backends(document: Document, more: Mapping[str, str]) -> None:
    """Append backends, name to the option that asked for it."""
    backends = document.data.get("backends", [])
    listed = list(backends) if isinstance(backends, list | tuple) else [backends]
    for name, place in more.items():
        document.values[("backends", len(listed))] = place
        listed.append(name)
    document.data["backends"] = listed


def expand_aliases(document: Document) -> None:
    """Replace N, h and B by the full names, and bfloat16, gpu and such by ours.

    Raises BadInput if an axis is given under both names.
    """
    cases = document.data.get("cases")
    indices = range(len(cases)) if isinstance(cases, list) else ()
    problems: list[str] = []
    for keys in (*AXIS_HOLDERS, *(("cases", index) for index in indices)):
        holder = value_at(document.data, keys)
        for short, full in ALIASES.items() if isinstance(holder, dict) else ():
            if short in holder and full in holder:
                place = document.place((*keys, short), of_key=True)
                problems.append(
                    f"{place}: {document.name((*keys, short))}: the same axis as {full}; wanted it"
                    " once; remove one"
                )
            elif short in holder:
                document.rename((*keys, short), full)
    for keys in ((), *AXIS_HOLDERS, *(("cases", index) for index in indices)):
        holder = value_at(document.data, keys)
        for name, aliases in VALUE_ALIASES.items() if isinstance(holder, dict) else ():
            if name in holder:
                holder[name] = real_values(holder[name], aliases)
    contrast = document.data.get("contrast")
    if isinstance(contrast, list):
        document.data["contrast"] = [
            ALIASES.get(axis, axis) if isinstance(axis, str) else axis for axis in contrast
        ]
    if problems:
        raise BadInput(*problems)


def real_values(value: Any, aliases: Mapping[str, str]) -> Any:
    """A value or a list of values by our names."""
    if isinstance(value, list):
        return [real_values(one, aliases) for one in value]
    return aliases.get(value, value) if isinstance(value, str) else value


def value_at(data: Any, keys: Keys) -> Any:
    """The value there, or None."""
    for key in keys:
        if isinstance(key, int):
            data = data[key]
        else:
            data = data.get(key) if isinstance(data, Mapping) else None
    return data


def apply(document: Document, changes: Iterable[str | Change]) -> None:
    """Set fields, text given as grid.seq_len=[512,1k]; whether they exist is checked later.

    Raises BadInput.
    """
    problems: list[str] = []
    for change in changes:
        try:
            apply_one(document, change_of(change) if isinstance(change, str) else change)
        except BadInput as error:
            problems += error.problems
    if problems:
        raise BadInput(*problems)


def change_of(text: str) -> Change:
    """What --set asks for. Raises BadInput."""
    place = text.place if isinstance(text, OptionText) else f"--set {one_line(text)}"
    path, equals, value = text.partition("=")
    if not equals or not all(path.split(".")):
        raise BadInput(
            f"{place}: not a change; wanted --set field=value, for example --set"
            " limits.memory_gib=2"
        )
    return Change(path=path, value=yaml(value, place), place=place)


def apply_one(document: Document, change: Change) -> None:
    place, keys = change.place, change.path.split(".")
    if keys[0] in ("grid", "watch"):
        keys[-1] = ALIASES.get(keys[-1], keys[-1])
    here = document.data
    for depth, key in enumerate(keys[:-1], 1):
        inner = here.get(key)
        if keys[:depth] == ["plan"] and isinstance(inner, str):
            document.replace(("plan",), {"like": inner}, document.place(("plan",)))
        elif inner is None:
            document.replace(tuple(keys[:depth]), {}, place)
        elif not isinstance(inner, dict):
            name = ".".join(keys[:depth])
            option = "--set " if place.startswith("--set") else ""
            raise BadInput(
                f"{place}: {name} has no fields of its own; wanted one value for all of it; use"
                f" {option}{name}=..."
            )
        here = here[key]
    document.replace(tuple(keys), change.value, place)
    for inside, where in change.inner.items():
        document.values[(*keys, *inside)] = where
    expand_aliases(document)
