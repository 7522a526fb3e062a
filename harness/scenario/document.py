"""Plain data that knows where each value came from: file:line:col, or the option that set it.

YAML 1.2 from untrusted files becomes such data by ruamel.yaml's parser events. Its constructors
would let a tag name a type or accept a repeated key. Anchors, aliases and tags are refused: a
scenario has nothing to share.
"""

import re
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, events
from ruamel.yaml.error import MarkedYAMLError, StringMark
from ruamel.yaml.reader import ReaderError

from ...impls.problem import AXES
from ..files.errors import OPTION, BadInput, shown
from ..files.printable import visible
from ..files.safe_files import read_text, text_place

Keys = tuple[str | int, ...]
"""The path to a value: ("grid", "seq_len", 2)."""
SHORT: Mapping[Any, str] = {name: axis.alias for name, axis in AXES.items() if axis.alias}


class Fields(dict[str, Any]):
    """A mapping. `at`: the places of its values and of their keys, also of some that it lacks."""

    def __init__(self, *given: Mapping[str, Any], **fields: Any) -> None:
        super().__init__(*given, **fields)
        self.at: dict[str | int, tuple[str, str]] = {}


class Items(list[Any]):
    """A list. `at`: the places of its items."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.at: dict[str | int, tuple[str, str]] = {}


class Document:
    """`data`: nested Fields and Items. `begin`: where it begins; from Python it has its origin.

    Its axes are found by their full names, also where it has short ones.
    """

    def __init__(self, data: Any, origin: str, begin: str = "") -> None:
        self.data = data
        self.origin = origin
        self.begin = begin or origin

    def place(self, keys: Keys, *, of_key: bool = False) -> str:
        """The place of the value at `keys`, or of its nearest parent that has one."""
        place, here = self.begin, self.data
        for depth, key in enumerate(keys, 1):
            if isinstance(here, Fields | Items):
                at = here.at.get(key) or here.at.get(SHORT.get(key, key), (place, place))
                place = at[of_key and depth == len(keys)]
            here = value_at(here, (key,))
        return place

    def name(self, keys: Keys) -> str:
        """The field as users write it, grid.seq_len[2]; no index or field of a single value."""
        text, here = "", self.data
        for key in keys:
            if isinstance(here, dict) and isinstance(key, str):
                text = f"{text}.{shown_word(key)}" if text else shown_word(key)
            elif isinstance(here, list) and isinstance(key, int) and key < len(here):
                text = f"{text}[{key}]"
            else:
                break
            here = value_at(here, (key,))
        return text

    def label(self, keys: Keys, *, of_key: bool = False) -> str:
        """Place and name, `file:7:3: grid.heads: `; the option of a field names it already."""
        place, name = self.place(keys, of_key=of_key), self.name(keys)
        field = re.sub(r"(\[\d+\])+$", "", name).rpartition(".")[2]
        return f"{place}: " if option_in(place) == field or not name else f"{place}: {name}: "

    def replace(self, keys: Keys, value: Any, place: str) -> None:
        """Put a value at `keys`, making missing mappings on the way."""
        here = self.data
        for key in keys[:-1]:
            here = here.setdefault(key, Fields())
        here.pop(SHORT.get(keys[-1]), None)
        here[keys[-1]] = value
        here.at[keys[-1]] = place, place


def value_at(data: Any, keys: Keys) -> Any:
    """The value there, or None."""
    for key in keys:
        if isinstance(data, dict):
            data = data.get(key, data.get(SHORT.get(key)))
        elif isinstance(data, list) and isinstance(key, int) and key < len(data):
            data = data[key]
        else:
            return None
    return data


def option_in(place: str) -> str:
    """The option that a place begins with; "" of another place."""
    found = OPTION.match(place)
    return found[1] if found else ""


def placeless(value: Any) -> Any:
    """Data from Python as fresh Fields and Items; what has places keeps them."""
    if isinstance(value, Fields | Items):
        return value
    if isinstance(value, Mapping):
        return Fields({key: placeless(inner) for key, inner in value.items()})
    return Items(map(placeless, value)) if isinstance(value, list | tuple) else value


def shown_word(text: str) -> str:
    """Without quotes if it is a plain word."""
    return text if len(text) <= 60 and re.fullmatch(r"[\w.+!:/-]+", text, re.ASCII) else shown(text)


# ---- from text -----------------------------------------------------------------------------------


MAX_BYTES = 1 << 20
MAX_DEPTH = 20
MAX_DIGITS = 18  # any such number fits 64 bits
# Limit of work: ruamel.yaml takes about 15 us per value, and what follows a few of them.
MAX_NODES = 50_000  # keys and values: 5 000 explicit cases of four fields
MAX_PROBLEMS = 20  # as many as anyone reads before the first is fixed
# The core schema of YAML 1.2: no `yes`, no `1:30`, no octal without 0o.
WORDS = dict.fromkeys(("", "~", "null", "Null", "NULL")) | {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
WANTED = "a scenario's .yaml file, or a name that `attnbench list scenarios` has"


def read_yaml(path: Path) -> Document:
    """The one document of a file; data is None if the file is empty. Raises BadInput."""
    name = visible(str(path))
    return parse_yaml(read_text(path, name, MAX_BYTES, WANTED), name)


def parse_yaml(text: str, origin: str) -> Document:
    """The one document in `text`; in that of an option, places are only the option.

    Raises BadInput.
    """
    builder = Builder(text, origin)
    try:
        document = builder.build()
    except BadInput as error:
        builder.problems += error.problems
    except MarkedYAMLError as error:
        where = builder.at_mark(error.problem_mark or error.context_mark)
        builder.problems = [f"{where}: {explained(error)}"]
    except ReaderError as error:
        where = builder.at(text_place(text[: error.position]))
        code = error.character if isinstance(error.character, int) else ord(error.character)
        builder.problems = [
            f"{where}: control character U+{code:04X}; wanted plain text; remove it"
        ]
    if builder.problems:
        raise BadInput(*builder.problems)
    return document


def explained(error: MarkedYAMLError) -> str:
    """What the parser says, on one line."""
    problem = " ".join(str(error.problem or error.context).split())
    if r"'\t'" in problem or "tab" in problem:
        return "a tab where YAML wants spaces; indent with spaces"
    if problem.startswith("mapping values are not allowed"):
        return (
            "not valid YAML: a colon where none can be; put text that has one in quotes, or check"
            " the indentation"
        )
    context = " ".join(str(error.context or "").split())
    extra = f" ({context})" if context and context != problem else ""
    return f"not valid YAML: {problem}{extra}"


class Builder:
    """Turns parser events into data with places; collects problems until a fatal one."""

    def __init__(self, text: str, origin: str) -> None:
        self.events = YAML(typ="safe", pure=True).parse(text)
        self.origin = origin
        self.is_option = option_in(origin) != ""
        self.problems: list[str] = []
        self.nodes = 0  # keys and values

    def at(self, place: str) -> str:
        return self.origin if self.is_option else f"{self.origin}:{place}"

    def at_mark(self, mark: StringMark) -> str:
        return self.at(f"{mark.line + 1}:{mark.column + 1}")

    def build(self) -> Document:
        document = Document(None, self.origin)
        starts = (event for event in self.events if isinstance(event, events.DocumentStartEvent))
        for number, start in enumerate(starts):
            if number:
                raise BadInput(
                    f"{self.at_mark(start.start_mark)}: a second document starts here; one document"
                    " expected; use one file for each"
                )
            event = next(self.events)
            begin = self.at_mark(event.start_mark)
            document = Document(self.value(event, begin, 0), self.origin, begin)
        return document

    def problem(self, text: str) -> None:
        """Collect a problem. Raises BadInput if it is one of too many."""
        if len(self.problems) == MAX_PROBLEMS:
            raise BadInput("and more; fix these first")
        self.problems.append(text)

    def value(self, event: Any, where: str, depth: int) -> Any:
        """The value that starts with `event`. A repeated key keeps its first value."""
        self.count(event, where, "value")
        if depth > MAX_DEPTH:
            raise BadInput(
                f"{where}: more than {MAX_DEPTH} levels of nesting; wanted a scenario, which has"
                " four"
            )
        if isinstance(event, events.ScalarEvent):
            return event.value if event.style else self.plain(event.value, where)
        if isinstance(event, events.SequenceStartEvent):
            items = Items()
            while not isinstance(event := next(self.events), events.SequenceEndEvent):
                where = self.at_mark(event.start_mark)
                items.at[len(items)] = where, where
                items.append(self.value(event, where, depth + 1))
            return items
        fields = Fields()
        while not isinstance(event := next(self.events), events.MappingEndEvent):
            where = key_at = self.at_mark(event.start_mark)
            if not isinstance(event, events.ScalarEvent):
                raise BadInput(f"{where}: a key that is not a word; wanted `field: value`")
            key = event.value
            self.count(event, where, "key")
            if key in fields:
                self.problem(
                    f"{where}: key {shown(key)} given twice, first at {fields.at[key][1]}; wanted"
                    " it once; remove one"
                )
            event = next(self.events)
            if not isinstance(event, events.ScalarEvent) or event.value or event.style:
                where = self.at_mark(event.start_mark)  # an empty value has no place
            fields.at.setdefault(key, (where, key_at))
            fields.setdefault(key, self.value(event, where, depth + 1))
        return fields

    def count(self, event: Any, where: str, what: str) -> None:
        """Count a key or a value. Raises BadInput for an alias, an anchor or too many of them."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise BadInput(f"{where}: more than {MAX_NODES} values; wanted a smaller scenario")
        if event.anchor is not None:
            sign = "alias *" if isinstance(event, events.AliasEvent) else "anchor &"
            raise BadInput(
                f"{where}: {sign}{shown_word(event.anchor)}; wanted a {what} without one; write"
                " the value out"
            )
        if event.ctag is not None:
            tag = shown_word(str(event.ctag).replace("tag:yaml.org,2002:", "!!"))
            self.problem(f"{where}: tag {tag}; wanted a {what} without a tag; remove it")

    def plain(self, text: str, where: str) -> Any:
        """A scalar without quotes, by the core schema."""
        if text in WORDS:
            return WORDS[text]
        if INTEGER.fullmatch(text):
            if len(text) <= MAX_DIGITS:
                return int(text, 0 if text[:2] in ("0o", "0x") else 10)
            digits = len(text.lstrip("+-"))
            self.problem(f"{where}: a number of {digits} digits; wanted at most {MAX_DIGITS}")
        elif FLOAT.fullmatch(text):
            if isfinite(number := float(re.sub(r"\.(?=[a-zA-Z])", "", text))):
                return number
            self.problem(f"{where}: found {shown_word(text)}; finite number required")
        return text
