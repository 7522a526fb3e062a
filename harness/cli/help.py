"""Help as plain text: what a command is for, examples, then its options; and the first screen."""

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain
from typing import Any

MOST_COLUMNS, FEWEST_COLUMNS = 100, 40
SCREEN_LINES = 23  # beside the next prompt
FRAME_LINES = 7  # usage, summary, where the rest is, and what is empty between parts
MOST_UNGROUPED = 14  # options
NAMES_COLUMNS = 28
SHORT = "attnbench.short_help"  # key of a context's meta
Line = tuple[str, str]
"""What something is called, and what it is for."""


def of_command(command: Any, context: Any, *, short: bool) -> str:
    """Of a verb. `short`: with the options that it is used with most, if it names those."""
    arguments = [one for one in command.params if is_argument(one) and not one.hidden]
    options = [one for one in command.get_params(context) if not is_argument(one)]
    options = [one for one in options if not one.hidden]
    by_name = {name: one for one in options for name in one.opts}
    usual = [by_name[name] for name in command.usual] if short else []
    usage = " ".join([context.command_path, *map(usage_of, arguments), "[OPTIONS]"])
    named = [(one.metavar or one.name, one.help or "") for one in arguments]
    if usual:
        lines = [*named, *(_option(one) for one in usual)]
        shown = [*_columns([(name, brief(text)) for name, text in lines])]
        room = SCREEN_LINES - len(shown) - FRAME_LINES
        examples = [[*_examples([one])] for one in command.examples]
        while len(examples) > 1 and sum(map(len, examples)) > room:
            examples.pop()
        end = f"all {len(options)} options: attnbench help {_words(context)}"
        return _joined([[usage], [summary(command)], [*chain(*examples)], shown, [end]])
    paragraphs = [" ".join(one.split()) for one in (command.help or "").split("\n\n")]
    parts = [[usage], *([*_wrapped(one)] for one in paragraphs)]
    parts += [[*_examples(command.examples)], [*_columns(named)]]
    if len(options) <= MOST_UNGROUPED:
        return _joined([*parts, [*_columns(_option(one) for one in options)]])
    for panel in dict.fromkeys(one.rich_help_panel for one in options):
        some = [_option(one) for one in options if one.rich_help_panel == panel]
        parts.append([*([f"{panel}:"] if panel else []), *_columns(some)])
    return _joined(parts)


def of_group(group: Any, context: Any) -> str:
    """Of a verb with verbs of its own."""
    commands = [(name, one) for name, one in group.commands.items() if not one.hidden]
    options = [_option(one) for one in group.get_params(context) if not one.hidden]
    parts = [[f"{context.command_path} [WHAT] [OPTIONS]"], [*_wrapped(group.help or "")]]
    parts.append([*_examples(group.examples)])
    parts.append([*_columns([(name, summary(one)) for name, one in commands])])
    parts.append([*_columns(options)])
    return _joined(parts)


def of_program(group: Any, first: Sequence[Sequence[str]], *, short: bool) -> str:
    """The first screen; without `short` all commands and the options."""
    known = group.commands
    shown = [[name for name in some if name in known] for some in first]
    width = max(map(len, known)) if not short else max(len(one) for some in shown for one in some)
    parts = [[*_wrapped(group.help)], ["usage: attnbench COMMAND ..."]]
    for some in shown:
        parts.append([*_columns([(name, summary(known[name])) for name in some], width)])
    rest = {name: one for name, one in known.items() if not any(name in some for some in shown)}
    rest = {name: one for name, one in rest.items() if not one.hidden}
    for panel in dict.fromkeys(one.rich_help_panel for one in rest.values()) if not short else ():
        of_panel = {name: one for name, one in rest.items() if one.rich_help_panel == panel}
        lines = [(name, summary(one)) for name, one in of_panel.items()]
        parts.append([f"{panel}:", *_columns(lines, width)])
    if short:
        parts.append([f"begin with: {group.examples[0]}"])
        parts.append(["one command: attnbench run -h", "more: attnbench help all"])
    else:
        parts.append([*_columns([_option(one) for one in group.params if not one.hidden])])
        parts.append(["one command: attnbench help run"])
    return _joined(parts)


# ---- texts ---------------------------------------------------------------------------------------


def summary(command: Any) -> str:
    """The first sentence of its help."""
    return re.split(r"(?<=[.?]) ", " ".join((command.help or "").split()))[0].rstrip(".")


def brief(text: str) -> str:
    """The first sentence, up to a semicolon."""
    return re.split(r"\. |; |\.$", text, maxsplit=1)[0]


def usage_of(argument: Any) -> str:
    name = f"{argument.metavar or argument.name}{'...' if argument.nargs == -1 else ''}"
    name = name.replace("......", "...")
    return name if argument.required else f"[{name}]"


def is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _option(option: Any) -> Line:
    """By its short name and its first long one; further ones are those of an earlier release."""
    names = [one for one in option.opts if not one.startswith("--")][:1]
    names += [one for one in option.opts if one.startswith("--")][:1]
    value = "" if option.is_flag else f" {option.metavar or 'VALUE'}"
    default = option.default.value if isinstance(option.default, Enum) else option.default
    known = isinstance(default, str | int | float) and default not in ("", False)
    text = (option.help or "") + (f" [{default}]" if known and not option.is_flag else "")
    return f"{', '.join(names)}{value}", text


def _words(context: Any) -> str:
    return str(context.command_path).partition(" ")[2]


def _examples(lines: Sequence[str]) -> Iterator[str]:
    width = columns() - 4
    for line in lines:
        parts = textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
        for number, part in enumerate(parts, start=1):
            goes_on = number < len(parts)
            yield ("  " if number == 1 else "    ") + part + (" \\" if goes_on else "")


def _columns(lines: Iterable[Line], least: int = 0) -> Iterator[str]:
    """Names beside their texts; the text of a long name is below it."""
    lines = list(lines)
    fitting = [len(name) for name, _ in lines if len(name) <= NAMES_COLUMNS]
    left = max([*fitting, least]) + 4 if lines else 0
    for name, text in lines:
        room = columns() - left
        parts = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
        if len(name) + 4 > left:
            yield f"  {name}"
        else:
            yield f"  {name:{left - 2}}{parts.pop(0)}".rstrip()
        yield from (" " * left + part for part in parts)


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, columns(), break_long_words=False, break_on_hyphens=False)


def columns() -> int:
    return min(MOST_COLUMNS, max(FEWEST_COLUMNS, shutil.get_terminal_size().columns))


def _joined(parts: Iterable[Sequence[str]]) -> str:
    """With an empty line between parts."""
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"
