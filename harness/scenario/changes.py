"""Prepare a document for the models: options as fields, short axis names, the user's changes."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, get_args

from ...impls.discovery.names import separated
from ...impls.problem import AXES
from ..cases.case import ALIASES, VALUE_ALIASES
from ..files.errors import BadInput, shown
from .document import Document, Fields, Items, Keys, parse_yaml, value_at
from .fields import DeviceKind

SEPARATOR = r"\s*,\s*|\s+"
GRID, WALL = "grid", "wall"
"""The names of scenarios that options give; runs of earlier versions are named `flags`."""


class Change(NamedTuple):
    """A field to set: `path`, such as limits.memory_gib, a value, and where it was asked for."""

    path: str
    value: Any
    place: str


class OptionText(str):
    """A change as text, path=value, that another option than --set asks for.

    `place`: the option as it was given.
    """

    place: str

    def __new__(cls, text: str, place: str) -> "OptionText":
        made = super().__new__(cls, text)
        made.place = place
        return made


MODEL_OPTIONS = ("model", "phase", "queries", "tp", "seq_len")
SHAPE_OPTIONS = (
    "head_dim",
    *(name for name in AXES if name not in ("batch", "seq_len", "dtype", "scope")),
)
AXIS_HOLDERS: tuple[Keys, ...] = (("grid",), ("grid", "cpu"), ("grid", "cuda"), ("watch",))


def options_document(options: Mapping[str, str | bool], *, find_wall: bool) -> Document:
    """A scenario from the command line: field name to the text that was given. Raises BadInput."""
    data = Fields(name=GRID, question="How do these cases compare?", grid=Fields())
    if find_wall:
        question = "How long a sequence fits in memory?"
        data.update(name=WALL, question=question, find_wall=True)
    data.at["backends"] = option("backends")
    data["grid"].at = {name: option(name) for name in ("seq_len", "heads")}
    data["grid"].at["d_model"] = "--d-model or --head-dim"
    document = Document(data, "command line")
    if "model" in options:
        document.replace(
            ("cases",), model_cases(options), f"--model {one_line(str(options['model']))}"
        )
        options = {name: text for name, text in options.items() if name not in MODEL_OPTIONS}
    for name, text in options.items():
        keys: Keys = (name,) if name in ("backends", "baseline") else ("grid", name)
        if isinstance(text, bool):
            document.replace(keys, text, option(name))
        elif name != "head_dim":
            given = f"{option(name)} {one_line(text)}"
            names = Items(separated(text)) if name == "backends" else text
            value = names if len(keys) == 1 else listed(text, given)
            document.replace(keys, value, given)
    if isinstance(width := options.get("head_dim"), str):
        add_head_dim(document, width)
    return document


def model_cases(options: Mapping[str, str | bool]) -> Items:
    """A case for each model and length. Raises BadInput for an axis that the model gives."""
    if wrong := [name for name in options if name in SHAPE_OPTIONS]:
        raise BadInput(
            f"{option(wrong[0])}: the model says it; leave out {option(wrong[0])}, or --model"
        )
    fixed = {name: options[name] for name in ("phase",) if name in options}
    for name in ("queries", "tp"):
        if isinstance(text := options.get(name), str):
            fixed[name] = yaml(text, f"{option(name)} {one_line(text)}")
    lengths: list[dict[str, Any]] = [{}]
    if isinstance(text := options.get("seq_len"), str):
        lengths = [{"seq_len": one} for one in listed(text, f"--seq-len {one_line(text)}")]
    models = re.split(r"\s*,\s*", str(options["model"]).strip())
    cases = Items(Fields(model=model, **length, **fixed) for model in models for length in lengths)
    for case in cases:
        case.at = {name: option(name) for name in MODEL_OPTIONS[1:]}
    return cases


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
    backends = document.data.setdefault("backends", Items())
    if not isinstance(backends, Items):
        backends = document.data["backends"] = Items([backends])
    for name, place in more.items():
        backends.at[len(backends)] = place
        backends.append(name)


def expand_aliases(document: Document) -> None:
    """Replace N, h and B by the full names, and bfloat16, gpu and such by ours.

    Raises BadInput if an axis is given under both names.
    """
    cases = value_at(document.data, ("cases",))
    indices = range(len(cases)) if isinstance(cases, list) else ()
    problems: list[str] = []
    for keys in ((), *AXIS_HOLDERS, *(("cases", index) for index in indices)):
        holder = value_at(document.data, keys)
        if not isinstance(holder, Fields):
            continue
        for short, full in ALIASES.items() if keys else ():
            if short in holder and full in holder:
                label = document.label((*keys, short), of_key=True)
                problems.append(f"{label}the same axis as {full}; wanted it once; remove one")
            elif short in holder:
                holder.rename(short, full)
        for name, aliases in VALUE_ALIASES.items():
            holder.update({name: real_values(holder[name], aliases)} if name in holder else {})
    if "contrast" in document.data:
        document.data["contrast"] = real_values(document.data["contrast"], ALIASES)
    if problems:
        raise BadInput(*problems)


def real_values(value: Any, aliases: Mapping[str, str]) -> Any:
    """A value or a list of values by our names."""
    if isinstance(value, list):
        value[:] = [real_values(one, aliases) for one in value]
    return aliases.get(value, value) if isinstance(value, str) else value


def apply(document: Document, changes: Iterable[str | Change]) -> None:
    """Set fields, text given as grid.seq_len=[512,1k]; whether they exist is checked later.

    Of changes given as text the order does not count: a field as a whole, such as plan, is set
    before its parts. Raises BadInput, also for a field that two of them set.
    """
    problems: list[str] = []
    given: list[Change] = []
    places: dict[Keys, str] = {}
    for change in changes:
        try:
            if isinstance(change, Change):
                apply_one(document, change)
                continue
            asked = change_of(change)
            other = places.setdefault(keys_of(asked), asked.place)
            if other is not asked.place:
                raise BadInput(
                    f"{asked.place}: {other} sets {asked.path} already; wanted it once; remove one"
                )
            given.append(asked)
        except BadInput as error:
            problems += error.problems
    for asked in sorted(given, key=lambda one: len(keys_of(one))):
        try:
            apply_one(document, asked)
        except BadInput as error:
            problems += error.problems
    if problems:
        raise BadInput(*problems)
    expand_aliases(document)


def keys_of(change: Change) -> Keys:
    """Where it goes, by our names."""
    keys = change.path.split(".")
    if keys[0] in ("grid", "watch"):
        keys[-1] = ALIASES.get(keys[-1], keys[-1])
    return tuple(keys)


def change_of(text: str) -> Change:
    """What --set asks for. Raises BadInput."""
    place = text.place if isinstance(text, OptionText) else f"--set {one_line(text)}"
    path, equals, value = text.partition("=")
    if not equals or not all(path.split(".")):
        raise BadInput(
            f"{place}: not a change; wanted --set field=value, for example --set"
            " limits.memory_gib=2"
        )
    return Change(path, yaml(value, place), place)


def apply_one(document: Document, change: Change) -> None:
    """Raises BadInput for a field of what has none."""
    place, keys = change.place, keys_of(change)
    if len(keys) > 1 and keys[0] == "plan" and isinstance(document.data.get("plan"), str):
        document.replace(("plan",), Fields(like=document.data["plan"]), document.place(("plan",)))
    for depth in range(1, len(keys)):
        inner = value_at(document.data, above := keys[:depth])
        if inner is None:
            document.replace(above, Fields(), place)
        elif not isinstance(inner, dict):
            name = ".".join(map(str, above))
            option = "--set " if place.startswith("--set") else ""
            raise BadInput(
                f"{place}: {name} has no fields of its own; wanted one value for all of it; use"
                f" {option}{name}=..."
            )
    document.replace(keys, change.value, place)
    if keys[:-1] == ("grid",):
        _drop_special(document.data["grid"], str(keys[-1]))


def _drop_special(grid: dict[str, Any], axis: str) -> None:
    """A changed axis holds on every kind of device, also where the file has values of its own."""
    for device in get_args(DeviceKind):
        special = grid.get(device)
        if isinstance(special, dict):
            for name in [name for name in special if ALIASES.get(name, name) == axis]:
                del special[name]
