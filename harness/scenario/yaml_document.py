"""Plain data with the place that each value came from: file:line:col, or the flag that set it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import shown

Keys = tuple[str | int, ...]
"""The way to a value: ("grid", "seq_len", 2)."""


class Document:
    """Nested dicts and lists, and where each key and value stands. Data from Python has no places,
    only its origin.
    """

    def __init__(self, data: Any, origin: str) -> None:
        self.data = data
        self.origin = origin
        self.keys: dict[Keys, str] = {}
        self.values: dict[Keys, str] = {}

    def place(self, keys: Keys, *, of_key: bool = False) -> str:
        """Where the value at `keys` stands, or its nearest parent that has a place."""
        if of_key and keys in self.keys:
            return self.keys[keys]
        for end in range(len(keys), -1, -1):
            if keys[:end] in self.values:
                return self.values[keys[:end]]
        return self.origin

    def name(self, keys: Keys) -> str:
        """The field as a user would say it, grid.seq_len[2]; an index only where the data has a
        list there.
        """
        text, here = "", self.data
        for key in keys:
            if isinstance(key, int):
                if not isinstance(here, Sequence) or isinstance(here, str) or key >= len(here):
                    break
                text += f"[{key}]"
            else:
                text += f".{key_word(key)}" if text else key_word(key)
            here = (
                here[key]
                if (isinstance(here, Mapping) and key in here) or isinstance(key, int)
                else None
            )
        return text

    def replace(self, keys: Keys, value: Any, place: str) -> None:
        """Puts a value at `keys`, making the mappings on the way; the way must not lead through
        anything else.
        """
        here = self.data
        for key in keys[:-1]:
            here = here.setdefault(key, {})
        here[keys[-1]] = value
        for places in (self.keys, self.values):
            for inner in [known for known in places if known[: len(keys)] == keys]:
                del places[inner]
            places[keys] = place

    def rename(self, keys: Keys, name: str) -> None:
        """Gives the last key, which holds a value or a list of values, another name; places move
        with it.
        """
        parent: Any = self.data
        for key in keys[:-1]:
            parent = parent[key]
        value = parent[name] = parent.pop(keys[-1])
        inner: list[Keys] = [
            (),
            *((index,) for index in range(len(value) if isinstance(value, list) else 0)),
        ]
        for places in (self.keys, self.values):
            for rest in inner:
                if (*keys, *rest) in places:
                    places[(*keys[:-1], name, *rest)] = places.pop((*keys, *rest))


def key_word(key: str) -> str:
    return key if len(key) <= 60 and re.fullmatch(r"[\w+-]+", key, re.ASCII) else shown(key)
