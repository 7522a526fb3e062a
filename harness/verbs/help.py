"""Help as plain text: what a command is for, examples, then its options; and the first screen."""

import inspect
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from itertools import chain
from typing import Any

from .fields import GROUPS
from .request import Option, Verb, as_typed, declared

MOST_COLUMNS, FEWEST_COLUMNS = 100, 40
SCREEN_LINES = 23  # beside the next prompt
FRAME_LINES = 7  # usage, summary, where the rest is, and what is empty between parts
MOST_UNGROUPED = 14  # options
NAMES_COLUMNS = 28
SHORT = "attnbench.short_help"  # key of a context's meta
Line = tuple[str, str]
"""What something is called, and what it is for."""


def of_command(command: Any, context: Any, *, short: bool) -> str:
    """Of a verb. `short`: at most a screen, with the options that it is used with most."""
    verb: Verb = command.verb
    known = declared(verb.request)
    every = [one for one in known.values() if one.for_shell and not one.hidden]
    arguments = [one for one in every if one.argument]
    options = [one for one in every if not one.argument]
    usage = " ".join([context.command_path, *map(_usage, arguments), "[OPTIONS]"])
    if short:
        usual = [known[name] for name in verb.usual.split()] or options
        lines = map(_line, [*arguments, *usual])
        shown = [*_columns([(name, _brief(text)) for name, text in lines])]
        room = SCREEN_LINES - len(shown) - FRAME_LINES
        examples = [[*_examples([one])] for one in verb.examples]
        while len(examples) > 1 and sum(map(len, examples)) > room:
            examples.pop()
        _, _, name = context.command_path.partition(" ")
        end = f"all {len(options)} options, in full: attnbench help {name}"
        return _joined([[usage], [_summary(command.help)], [*chain(*examples)], shown, [end]])
    parts = [[usage], *(_wrapped(" ".join(one.split())) for one in command.help.split("\n\n"))]
    parts += [[*_examples(verb.examples)], [*_columns(map(_line, arguments))]]
    if len(options) <= MOST_UNGROUPED:
        return _joined([*parts, [*_columns(map(_line, options))]])
    for group in GROUPS:
        some = [_line(one) for one in options if one.group == group]
        parts.append([*([f"{group}:"] if group and some else []), *_columns(some)])
    return _joined(parts)


def of_program(
    group: Any, first: Sequence[Sequence[str]], verbs: Mapping[str, Verb], *, short: bool
) -> str:
    """The first screen; without `short` all commands and the options."""
    blocks = [*first] if short else [*first, [one for one in verbs if one not in chain(*first)]]
    width = max(map(len, chain(*blocks)))
    parts = [_wrapped(group.help)]
    for some in blocks:
        lines = [(one, _summary(inspect.getdoc(verbs[one].tell) or "")) for one in some]
        parts.append([*_columns(lines, width)])
    if short:
        begin = f"begin with: {group.examples[0]}"
        parts.append([begin, "one command: attnbench run -h; more: attnbench help all"])
    else:
        parts.append([*_columns([(one.opts[0], one.help) for one in group.params])])
        parts.append(["one command: attnbench help run"])
    return _joined(parts)


# ---- texts ---------------------------------------------------------------------------------------


def _summary(text: str) -> str:
    """The first sentence of a command's help."""
    return re.split(r"(?<=[.?]) ", " ".join(text.split()))[0].rstrip(".")


def _brief(text: str) -> str:
    """The first sentence, up to a semicolon."""
    return re.split(r"\. |; |\.$", text, maxsplit=1)[0]


def _usage(argument: Option) -> str:
    name = argument.value + ("..." if argument.is_many else "")
    return name if argument.default is MISSING else f"[{name}]"


def _line(one: Option) -> Line:
    """Other names are those of an earlier release."""
    if one.argument:
        return one.value, _with_default(one)
    names = [*filter(None, [one.short]), f"--{one.name.replace('_', '-')}"]
    value = "" if one.is_switch else f" {one.value or 'VALUE'}"
    return f"{', '.join(names)}{value}", _with_default(one)


def _with_default(one: Option) -> str:
    """Behind the first sentence or its first part, which is all that -h has of a help."""
    default, brief = one.default, _brief(one.help)
    if default in (None, "", (), MISSING) or isinstance(default, bool) or "(default:" in one.help:
        return one.help
    rest = one.help.removeprefix(brief) or "."
    return f"{brief} (default: {as_typed(default)}){rest}"


def _examples(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        first, *more = (f"{part} \\" for part in _wrapped(line, columns() - 4))
        whole = "\n".join([f"  {first}", *(f"    {part}" for part in more)])
        yield from whole.removesuffix(" \\").split("\n")


def _columns(lines: Iterable[Line], least: int = 0) -> Iterator[str]:
    """Names beside their texts; the text of a long name is below it."""
    lines = list(lines)
    fitting = [len(name) for name, _ in lines if len(name) <= NAMES_COLUMNS]
    left = max([*fitting, least]) + 4 if lines else 0
    for name, text in lines:
        parts = _wrapped(text, columns() - left) or [""]
        beside = parts.pop(0) if len(name) + 4 <= left else ""
        yield f"  {name:{left - 2}}{beside}".rstrip()
        yield from (" " * left + part for part in parts)


def _wrapped(text: str, width: int = 0) -> list[str]:
    width = width or columns()
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def columns() -> int:
    return min(MOST_COLUMNS, max(FEWEST_COLUMNS, shutil.get_terminal_size().columns))


def _joined(parts: Iterable[Sequence[str]]) -> str:
    """With an empty line between parts."""
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"
