"""Prepare a document for the models: axes as fields, short axis names, the user's changes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

from ...impls.discovery.names import separated
from ...impls.problem import AXES
from ..cases.case import ALIASES, VALUE_ALIASES
from ..files.errors import BadInput, option, shown
from .document import Document, Fields, Items, Keys, option_in, parse_yaml, placeless, value_at
from .fields import DeviceKind

SEPARATOR = r"\s*,\s*|\s+"
GRID, WALL = "grid", "wall"
"""The names of scenarios that options give; runs of earlier versions are named `flags`."""


class Change(NamedTuple):
    """A field to set: `path`, such as limits.memory_gib, a value, and how it was asked for."""

    path: str
    value: Any
    label: str


MODEL_OPTIONS = ("model", "phase", "queries", "tp", "seq_len")
SHAPE_OPTIONS = (
    "head_dim",
    *(name for name in AXES if name not in ("batch", "seq_len", "dtype", "scope")),
)
AXIS_HOLDERS: tuple[Keys, ...] = (("grid",), ("grid", "cpu"), ("grid", "cuda"), ("watch",))


def axes_document(axes: Mapping[str, Any], *, find_wall: bool) -> Document:
    """A scenario from fields and axes, each a text as in a shell or a value. Raises BadInput."""
    data = Fields(name=GRID, question="How do these cases compare?", grid=Fields())
    if find_wall:
        question = "How long a sequence fits in memory?"
        data.update(name=WALL, question=question, find_wall=True)
    data.at["backends"] = option("backends")
    data["grid"].at = {name: option(name) for name in ("seq_len", "heads")}
    data["grid"].at["d_model"] = f"{option('d_model')} or {option('head_dim')}"
    document = Document(data, "command line")
    if "model" in axes:
        document.replace(("cases",), model_cases(axes), label("model", axes["model"]))
        axes = {name: value for name, value in axes.items() if name not in MODEL_OPTIONS}
    for name, value in axes.items():
        given = label(name, value)
        if name == "backends":
            names = separated(value) if isinstance(value, str) else value
            document.replace((name,), Items(names), given)
        elif name == "baseline":
            document.replace((name,), value, given)
        elif name != "head_dim":
            document.replace(("grid", name), values_of(name, value), given)
    if "head_dim" in axes:
        add_head_dim(document, axes["head_dim"])
    return document


def model_cases(axes: Mapping[str, Any]) -> Items:
    """A case for each model and length. Raises BadInput for an axis that the model gives."""
    if wrong := [name for name in axes if name in SHAPE_OPTIONS]:
        raise BadInput(
            f"{option(wrong[0])}: the model says it; leave out {option(wrong[0])}, or"
            f" {option('model')}"
        )
    fixed = {name: axes[name] for name in ("phase",) if name in axes}
    for name in ("queries", "tp"):
        if name in axes:
            fixed[name] = value_of(name, axes[name], axes[name])
    lengths: list[dict[str, Any]] = [{}]
    if "seq_len" in axes:
        lengths = [{"seq_len": one} for one in values_of("seq_len", axes["seq_len"])]
    models = axes["model"]
    if isinstance(models, str):
        models = re.split(r"\s*,\s*", models.strip())
    cases = Items(Fields(model=model, **length, **fixed) for model in models for length in lengths)
    for case in cases:
        case.at = {name: option(name) for name in MODEL_OPTIONS[1:]}
    return cases


def values_of(name: str, given: Any) -> Any:
    """The values of an axis, from a text with commas or spaces between them. Raises BadInput."""
    if isinstance(given, bool):
        return given
    if isinstance(given, str):
        text = ",".join(re.split(SEPARATOR, given.strip()))
        return value_of(name, f"[{text}]", given)
    several = given if isinstance(given, Sequence) else [given]
    return Items(value_of(name, one, given) for one in several)


def value_of(name: str, value: Any, given: Any) -> Any:
    """A value as it is, or from its text."""
    if isinstance(value, str):
        return parse_yaml(value, label(name, given), lines=False).data
    return placeless(value)


def label(name: str, given: Any) -> str:
    """The option as the user gave it."""
    if isinstance(given, bool):
        return option(name)
    listed = isinstance(given, Sequence) and not isinstance(given, str)
    return option(name, one_line(",".join(map(str, given)) if listed else str(given)))


def add_head_dim(document: Document, width: Any) -> None:
    """The width of a head, of queries, keys and values alike. Raises BadInput.

    Without d_model, the model is as wide as its heads together.
    """
    given = label("head_dim", width)
    grid, widths = document.data["grid"], values_of("head_dim", width)
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
                f" wanted {option('d_model')} too"
            )
    for axis in ("d_k", "d_v"):
        document.replace(("grid", axis), widths, given)


def one_line(text: str) -> str:
    return text if text.isprintable() and len(text) <= 100 else shown(text)


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


def apply(document: Document, changes: Sequence[Change]) -> None:
    """Set fields; whether they exist is checked later.

    The order does not count: a field as a whole, such as plan, is set before its parts. Raises
    BadInput, also for a field that two of them set.
    """
    problems: list[str] = []
    labels: dict[Keys, str] = {}
    for change in sorted(changes, key=lambda one: len(keys_of(one))):
        try:
            other = labels.setdefault(keys_of(change), change.label)
            if other is not change.label:
                raise BadInput(
                    f"{change.label}: {other} sets {change.path} already; wanted it once; remove"
                    " one"
                )
            apply_one(document, change)
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


def read_change(text: str) -> Change:
    """What --set asks for: field=value, the value in YAML. Raises BadInput."""
    given = option("set", one_line(text))
    path, equals, value = text.partition("=")
    if not equals or not all(path.split(".")):
        raise BadInput(
            f"{given}: not a change; wanted {option('set', 'field=value')}, for example"
            f" {option('set', 'limits.memory_gib=2')}"
        )
    return Change(path, parse_yaml(value, given, lines=False).data, given)


def apply_one(document: Document, change: Change) -> None:
    """Raises BadInput for a field of what has none."""
    place, keys = change.label, keys_of(change)
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
    if keys[:-1] == ("grid",):
        _drop_special(document.data["grid"], str(keys[-1]))


def _drop_special(grid: dict[str, Any], axis: str) -> None:
    """A changed axis holds on every kind of device, also where the file has values of its own."""
    for device in get_args(DeviceKind):
        special = grid.get(device)
        if isinstance(special, dict):
            for name in [name for name in special if ALIASES.get(name, name) == axis]:
                del special[name]
