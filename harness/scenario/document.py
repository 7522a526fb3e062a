"""Plain data that knows where each value came from: file:line:col, or the option that set it."""

import re
from collections.abc import Mapping
from typing import Any

from ..files.errors import shown

Keys = tuple[str | int, ...]
"""The path to a value: ("grid", "seq_len", 2)."""


class Fields(dict[str, Any]):
    """A mapping. `at`, `keys_at`: the places of its values and keys, also of some that it lacks."""

    def __init__(self, *given: Mapping[str, Any], **fields: Any) -> None:
        super().__init__(*given, **fields)
        self.at: dict[str | int, str] = {}
        self.keys_at: dict[str | int, str] = {}

    def rename(self, old: str, new: str) -> None:
        self[new] = self.pop(old)
        for places in (self.at, self.keys_at):
            if old in places:
                places[new] = places.pop(old)


class Items(list[Any]):
    """A list. `at`: the places of its items."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.at: dict[str | int, str] = {}


class Document:
    """`data`: nested Fields and Items. `begin`: where it begins; from Python it has its origin."""

    def __init__(self, data: Any, origin: str, begin: str = "", nodes: int = 0) -> None:
        self.data = data
        self.origin = origin
        self.begin = begin or origin
        self.nodes = nodes  # keys and values read from text

    def place(self, keys: Keys, *, of_key: bool = False) -> str:
        """The place of the value at `keys`, or of its nearest parent that has one."""
        place, here = self.begin, self.data
        for depth, key in enumerate(keys, 1):
            if isinstance(here, Fields | Items):
                place = here.at.get(key, place)
            if of_key and depth == len(keys) and isinstance(here, Fields):
                place = here.keys_at.get(key, place)
            here = value_at(here, (key,))
        return place

    def name(self, keys: Keys) -> str:
        """The field as users write it, grid.seq_len[2]; an index only if the data has a list."""
        text = ""
        for depth, key in enumerate(keys):
            if isinstance(key, str):
                text = f"{text}.{key_word(key)}" if text else key_word(key)
                continue
            holder = value_at(self.data, keys[:depth])
            if not isinstance(holder, list) or key >= len(holder):
                break
            text = f"{text}[{key}]"
        return text

    def label(self, keys: Keys, *, of_key: bool = False) -> str:
        """Place and name, `file:7:3: grid.heads: `; the option of a field names it already."""
        place, name = self.place(keys, of_key=of_key), self.name(keys)
        field = re.sub(r"(\[\d+\])+$", "", name).rpartition(".")[2]
        is_option = place.partition(" ")[0] == f"--{field.replace('_', '-')}"
        return f"{place}: " if is_option or not name else f"{place}: {name}: "

    def replace(self, keys: Keys, value: Any, place: str) -> None:
        """Put a value at `keys`, making missing mappings on the way."""
        here = self.data
        for key in keys[:-1]:
            here = here.setdefault(key, Fields())
        here[keys[-1]] = value
        here.at[keys[-1]] = here.keys_at[keys[-1]] = place


def value_at(data: Any, keys: Keys) -> Any:
    """The value there, or None."""
    for key in keys:
        if isinstance(data, dict):
            data = data.get(key)
        elif isinstance(data, list) and isinstance(key, int) and key < len(data):
            data = data[key]
        else:
            return None
    return data


def placeless(value: Any) -> Any:
    """Data from Python as fresh Fields and Items."""
    if isinstance(value, Mapping):
        return Fields({key: placeless(inner) for key, inner in value.items()})
    return Items(map(placeless, value)) if isinstance(value, list | tuple) else value


def key_word(key: str) -> str:
    return key if len(key) <= 60 and re.fullmatch(r"[\w+-]+", key, re.ASCII) else shown(key)
