"""Builds plain data from YAML events, noting where every value stands, and counting what aliases
would multiply.
"""

import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml.error import StringMark
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from ..errors import BadInput, shown
from .yaml_document import Document, Keys

MAX_DEPTH = 64
MAX_DIGITS = 18  # any such number fits 64 bits
MAX_NODES = 200_000  # 10 000 explicit cases of ten fields; text that reaches it takes about 2 s
# The core schema of YAML 1.2: no `yes`, no `1:30`, no octal without 0o.
NULL = {"", "~", "null", "Null", "NULL"}
BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
DECIMAL = re.compile(r"[-+]?[0-9]+")
BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def too_deep() -> str:
    return f"more than {MAX_DEPTH} levels of nesting; wanted a scenario, which has four"


class Builder:
    """Turns one document's events into plain data, noting places; goes on after a problem where it
    can, and lists them all.
    """

    def __init__(self, events: Iterator[Event], origin: str, *, lines: bool) -> None:
        self.events = events
        self.origin = origin
        self.lines = lines
        self.problems: list[str] = []
        self.nodes = 0
        self.anchors: dict[
            str, tuple[Any, int] | None
        ] = {}  # value and its nodes; None while it is being built
        self.places = Document(None, origin)

    def at(self, mark: StringMark | None) -> str:
        return (
            f"{self.origin}:{mark.line + 1}:{mark.column + 1}"
            if self.lines and mark
            else self.origin
        )

    def document(self) -> Document:
        found = False
        for event in self.events:
            if not isinstance(event, DocumentStartEvent):
                continue
            if found:
                raise BadInput(
                    f"{self.at(event.start_mark)}: a second document starts here; one document"
                    " expected; use one file for each"
                )
            found = True
            self.places.data = self.node(next(self.events), ())
        return self.places

    def node(self, event: Event, keys: Keys) -> Any:
        """The value that starts with `event`, built to its end."""
        where = self.at(event.start_mark)
        self.places.values.setdefault(keys, where)
        self.count(1, where)
        if len(keys) > MAX_DEPTH:
            raise BadInput(f"{where}: {too_deep()}")
        if isinstance(event, AliasEvent):
            return self.alias(event.anchor, where)
        assert isinstance(event, ScalarEvent | CollectionStartEvent)
        if event.ctag is not None:
            self.problems.append(
                f"{where}: tag {shown_tag(str(event.ctag))}; wanted a value without a tag;"
                " remove it"
            )
        before = self.nodes
        if event.anchor:
            self.anchors[event.anchor] = None
        value = self.content(event, keys, where)
        if event.anchor:
            self.anchors[event.anchor] = (value, self.nodes - before + 1)
        return value

    def content(self, event: Event, keys: Keys, where: str) -> Any:
        if isinstance(event, ScalarEvent):
            return event.value if event.style else self.plain(event.value, where)
        if isinstance(event, SequenceStartEvent):
            items: list[Any] = []
            while not isinstance(item := next(self.events), SequenceEndEvent):
                items.append(self.node(item, (*keys, len(items))))
            return items
        assert isinstance(event, MappingStartEvent)
        mapping: dict[str, Any] = {}
        while not isinstance(key_event := next(self.events), MappingEndEvent):
            self.entry(key_event, keys, mapping)
        return mapping

    def entry(self, event: Event, keys: Keys, mapping: dict[str, Any]) -> None:
        """One key and its value. A repeated key keeps its first value."""
        where = self.at(event.start_mark)
        if not isinstance(event, ScalarEvent):
            raise BadInput(f"{where}: a key that is not a word; wanted `field: value`")
        self.count(1, where)
        if event.ctag is not None:
            self.problems.append(
                f"{where}: tag {shown_tag(str(event.ctag))}; wanted a key without a tag; remove it"
            )
        key = event.value
        path = (*keys, key)
        if key in mapping:
            first = self.places.keys[path]
            self.problems.append(
                f"{where}: key {shown(key)} given twice, first at {first}; wanted it once;"
                " remove one"
            )
        else:
            self.places.keys[path] = where
        value = next(self.events)
        if isinstance(value, ScalarEvent) and not value.value and not value.style:
            self.places.values.setdefault(
                path, where
            )  # nothing stands there that one could point at
        mapping.setdefault(key, self.node(value, path))

    def alias(self, anchor: str, where: str) -> Any:
        if anchor not in self.anchors:
            raise BadInput(
                f"{where}: alias *{shown_word(anchor)} without its anchor; wanted"
                f" &{shown_word(anchor)} before it"
            )
        known = self.anchors[anchor]
        if known is None:
            raise BadInput(
                f"{where}: recursive alias *{shown_word(anchor)}: it stands inside what it names;"
                " write the value out"
            )
        value, nodes = known
        self.count(nodes - 1, where)
        return value

    def count(self, nodes: int, where: str) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise BadInput(
                f"{where}: more than {MAX_NODES} values once aliases are written out; wanted a"
                " smaller scenario"
            )

    def plain(self, text: str, where: str) -> Any:
        """A scalar without quotes, by the core schema."""
        if text in NULL:
            return None
        if text in BOOL:
            return BOOL[text]
        if DECIMAL.fullmatch(text) or BASED.fullmatch(text):
            if len(text) > MAX_DIGITS:
                self.problems.append(
                    f"{where}: a number of {len(text.lstrip('+-'))} digits; wanted at most"
                    f" {MAX_DIGITS}"
                )
                return 0
            return int(text, 10 if DECIMAL.fullmatch(text) else 0)
        if NOT_FINITE.fullmatch(text) or (
            FLOAT.fullmatch(text) and abs(float(text)) == float("inf")
        ):
            self.problems.append(f"{where}: found {shown_word(text)}; finite number required")
            return 0.0
        return float(text) if FLOAT.fullmatch(text) else text


def shown_word(text: str) -> str:
    """Without quotes where it is a plain word."""
    return text if len(text) <= 60 and re.fullmatch(r"[\w.+!:/-]+", text, re.ASCII) else shown(text)


def shown_tag(tag: str) -> str:
    return shown_word(tag.replace("tag:yaml.org,2002:", "!!"))
