"""Plain data, and where each value came from: file:line:col, or the option that set it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..files.errors import shown

Keys = tuple[str | int, ...]
"""The path to a value: ("grid", "seq_len", 2)."""


class Document:
    """Nested dicts and lists with the places of keys and values.

    Data from Python has no places, only its origin.
    """

    def __init__(self, data: Any, origin: str) -> None:
        self.data = data
        self.origin = origin
        self.nodes = 0  # keys and values read from text
        self.keys: dict[Keys, str] = {}
        self.values: dict[Keys, str] = {}

    def place(self, keys: Keys, *, of_key: bool = False) -> str:
        """The place of the value at `keys`, or of its nearest parent that has one."""
        if of_key and keys in self.keys:
            return self.keys[keys]
        parents = (keys[:end] for end in range(len(keys), -1, -1))
        return next((self.values[some] for some in parents if some in self.values), self.origin)

    def name(self, keys: Keys) -> str:
        """The field as users write it, grid.seq_len[2]; an index only if the data has a list."""
        text, here = "", self.data
        for key in keys:
            if isinstance(key, int):
                if not isinstance(here, Sequence) or isinstance(here, str) or key >= len(here):
                    break
                text, here = f"{text}[{key}]", here[key]
            else:
                text = f"{text}.{key_word(key)}" if text else key_word(key)
                here = here.get(key) if isinstance(here, Mapping) else None
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
            here = here.setdefault(key, {})
        here[keys[-1]] = value
        for places in (self.keys, self.values):
            for inner in [known for known in places if known[: len(keys)] == keys]:
                del places[inner]
            places[keys] = place

    def rename(self, keys: Keys, name: str) -> None:
        """Rename the last key, which holds a value or a list of values; its places move along."""
        parent: Any = self.data
        for key in keys[:-1]:
            parent = parent[key]
        value = parent[name] = parent.pop(keys[-1])
        items = range(len(value)) if isinstance(value, list) else ()
        for places in (self.keys, self.values):
            for rest in [(), *((index,) for index in items)]:
                if (*keys, *rest) in places:
                    places[(*keys[:-1], name, *rest)] = places.pop((*keys, *rest))


def key_word(key: str) -> str:
    return key if len(key) <= 60 and re.fullmatch(r"[\w+-]+", key, re.ASCII) else shown(key)
