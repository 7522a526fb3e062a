"""What reaches the models: a document with short axis names written out, and with the user's
changes laid over it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import BadInput, shown
from .fields import ALIASES
from .yaml_document import Document, Keys
from .yaml_text import parse_yaml

AXIS_HOLDERS: tuple[Keys, ...] = (("grid",), ("grid", "cpu"), ("grid", "cuda"), ("watch",))


def value_of(text: str, origin: str) -> Any:
    """A value as it would stand in YAML: 2, [512, 1k], {like: quick}. Raises BadInput."""
    return parse_yaml(text, origin, lines=False).data


def flag_document(flags: Mapping[str, str | bool], *, find_wall: bool) -> Document:
    """A scenario from the command line's axes: field name to the text that was given. Raises
    BadInput.
    """
    top = ("backends", "baseline")
    data: dict[str, Any] = {"name": "flags", "question": "How do these cases compare?", "grid": {}}
    if find_wall:
        data |= {
            "name": "wall",
            "question": "How long a sequence fits in memory?",
            "find_wall": True,
        }
    document = Document(data, "command line")
    for name in ("backends", "seq_len", "d_model", "heads"):
        document.values[(name,) if name in top else ("grid", name)] = flag(name)
    for name, text in flags.items():
        keys: Keys = (name,) if name in top else ("grid", name)
        given = flag(name) if isinstance(text, bool) else f"{flag(name)} {one_line(text)}"
        value = (
            text if isinstance(text, bool) or name == "baseline" else value_of(f"[{text}]", given)
        )
        document.replace(keys, value, given)
    return document


def add_backends(document: Document, more: Mapping[str, str]) -> None:
    """Appends backends, name to the flag that asked for it, in place."""
    backends = document.data.get("backends", [])
    listed = list(backends) if isinstance(backends, list | tuple) else [backends]
    for name, place in more.items():
        document.values[("backends", len(listed))] = place
        listed.append(name)
    document.data["backends"] = listed


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def one_line(text: str) -> str:
    return text if text.isprintable() and len(text) <= 100 else shown(text)


def expand_aliases(document: Document) -> None:
    """Gives N, h and B their full names, in place. Raises BadInput where both are given."""
    holders: list[Keys] = [*AXIS_HOLDERS]
    if isinstance(document.data.get("cases"), list):
        holders += [("cases", index) for index in range(len(document.data["cases"]))]
    problems: list[str] = []
    for keys in holders:
        holder = value_at(document.data, keys)
        if not isinstance(holder, dict):
            continue
        for short, full in ALIASES.items():
            if short in holder and full in holder:
                place = document.place((*keys, short), of_key=True)
                problems.append(
                    f"{place}: {document.name((*keys, short))}: the same axis as {full}; wanted it"
                    " once; remove one"
                )
            elif short in holder:
                document.rename((*keys, short), full)
    contrast = document.data.get("contrast")
    if isinstance(contrast, list):
        document.data["contrast"] = [
            ALIASES.get(axis, axis) if isinstance(axis, str) else axis for axis in contrast
        ]
    if problems:
        raise BadInput(*problems)


def value_at(data: Any, keys: Keys) -> Any:
    """The value there, or None."""
    for key in keys:
        data = (
            data[key]
            if isinstance(key, int)
            else data.get(key)
            if isinstance(data, Mapping)
            else None
        )
    return data


def apply(document: Document, changes: Iterable[str]) -> None:
    """Lays changes such as grid.seq_len=[512,1k] over the document, in place. Whether the fields
    exist is not looked at here.

    Raises BadInput.
    """
    problems: list[str] = []
    for change in changes:
        try:
            apply_one(document, change)
        except BadInput as error:
            problems += error.problems
    if problems:
        raise BadInput(*problems)


def apply_one(document: Document, change: str) -> None:
    place = f"--set {one_line(change)}"
    path, equals, text = change.partition("=")
    if not equals or not all(path.split(".")):
        raise BadInput(
            f"{place}: not a change; wanted --set field=value, for example --set"
            " limits.memory_gib=2"
        )
    keys = list(path.split("."))
    if keys[0] in ("grid", "watch"):
        keys[-1] = ALIASES.get(keys[-1], keys[-1])
    here = document.data
    for depth, key in enumerate(keys[:-1]):
        inner = here.get(key)
        if keys[: depth + 1] == ["plan"] and isinstance(inner, str):
            document.replace(("plan",), {"like": inner}, document.place(("plan",)))
        elif inner is None:
            document.replace(tuple(keys[: depth + 1]), {}, place)
        elif not isinstance(inner, dict):
            name = ".".join(keys[: depth + 1])
            raise BadInput(
                f"{place}: {name} has no fields of its own; wanted one value for all of it; use"
                f" --set {name}=..."
            )
        here = here[key]
    document.replace(tuple(keys), value_of(text, place), place)
    expand_aliases(document)
