"""A verb on the command line: options from its request, its help, and how commands end."""

import errno
import inspect
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from itertools import chain
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from ...impls import BadBackend
from ..files.errors import BadInput, EnvironmentUnmet, Refusal, Spelling, StoreError, instead_of
from ..files.printable import visible
from . import completion
from .fields import GROUPS
from .request import Option, Verb, as_typed, checked, declared

PLAIN: Any = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
"""Of typer: help and messages are ours."""
MOST_PATH = 200  # characters of one in a message
LOOP = "Symlink loop"  # of pathlib, before Python 3.13
# Its classes are not in typer's own names, and their module differs between versions.
UsageError: Any = typer.BadParameter.__base__
MOST_COLUMNS, FEWEST_COLUMNS = 100, 40
SCREEN_LINES = 23  # beside the next prompt
FRAME_LINES = 7  # usage, summary, where the rest is, and what is empty between parts
MOST_UNGROUPED = 14  # options
NAMES_COLUMNS = 28
SHORT = "attnbench.short_help"  # key of a context's meta
Line = tuple[str, str]
"""What something is called, and what it is for."""


class Parsed:
    """A command or a group whose help is short with -h, and whose mistakes name the command."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        ctx.meta[SHORT] = "--help" not in args
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc]
        except UsageError as error:  # click's parser does not say of which command it is
            error.ctx = error.ctx or ctx
            raise


class Command(Parsed, TyperCommand):
    """A verb, with a help of our own."""

    verb: Verb

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(of_command(self, ctx, short=ctx.meta.get(SHORT, False)))


def command(name: str, verb: Verb) -> Any:
    """What click runs: it exits with the code that the verb's `tell` gives."""
    known = sorted(
        (one for one in declared(verb.request).values() if one.for_shell),
        key=lambda one: GROUPS.index(one.group),
    )

    def run(**values: Any) -> None:
        raise typer.Exit(verb.tell(asked(verb, values)))

    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [_parameter(one) for one in known]
    )
    app = typer.Typer(add_completion=False, **PLAIN)
    made = type("Command", (Command,), {"verb": verb})
    app.command(name, cls=made, help=inspect.getdoc(verb.tell))(run)
    return get_command(app)


def asked(verb: Verb, values: Mapping[str, Any]) -> Any:
    """The request of what typer has parsed. Raises BadInput."""
    given = {name: one for name, one in values.items() if one not in (None, [], (), False)}
    return checked(verb.request, given, Spelling.SHELL)


def _parameter(one: Option) -> inspect.Parameter:
    """As typer reads it: text, except for switches and what may be given more than once. What is
    missing or wrong is told by the request, not by typer.
    """
    settings: dict[str, Any] = {
        "help": one.help,
        "autocompletion": one.complete or completion.words(one.words),
        "hidden": one.hidden,
    }
    if one.argument:
        info = typer.Argument(metavar=one.value, **settings)
    else:
        flags = [f"--{name.replace('_', '-')}" for name in (one.name, *one.also)]
        flags += [one.short] if one.short else []
        value = None if one.is_switch else one.value or None
        info = typer.Option(*flags, metavar=value, rich_help_panel=one.group or None, **settings)
    kind = bool if one.is_switch else (list[str] | None) if one.is_many else (str | None)
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if one.is_switch else None,
        annotation=Annotated[kind, info],
    )


# ---- help: what a command is for, examples, its options; and the first screen --------------------


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


# ---- the end -------------------------------------------------------------------------------------


def exit_code(app: typer.Typer) -> int:
    """Run the command line. What is refused is one line on stderr; a bug is a traceback."""
    try:
        code = app(prog_name="attnbench", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the first screen was asked for
            sys.stdout.write(f"{error.format_message()}\n")
            return 0
        say_error(misused(error))
        return int(error.exit_code)
    except typer.Abort:
        return 1
    except Refusal as refusal:
        say_error(*str(refusal).splitlines())
        if isinstance(refusal, StoreError):
            for row in refusal.unsaved:
                sys.stderr.write(json.dumps(row) + "\n")
        return refusal.exit_code
    except BadBackend as error:  # a user's file
        say_error(str(error))
        return BadInput.exit_code
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            say_error(f"{error.strerror}: wanted at least 32; raise the limit: ulimit -n 1024")
            return EnvironmentUnmet.exit_code
        if error.filename is None:
            raise
        place = visible(str(error.filename))
        place = place if len(place) <= MOST_PATH else f"{place[:MOST_PATH]}..."
        say_error(f"{place}: {error.strerror}; choose another path")
        return BadInput.exit_code
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from ..devices.this_device import NO_TORCH

        say_error(NO_TORCH)
        return EnvironmentUnmet.exit_code
    except RuntimeError as error:
        if not str(error).startswith(LOOP):
            raise
        say_error(f"{visible(str(error))}; choose another path")
        return BadInput.exit_code
    except KeyboardInterrupt:
        return 130


def say_error(*problems: str) -> None:
    """A line each on stderr, all with one beginning."""
    sys.stderr.write("".join(f"error: {one}\n" for one in problems))


def misused(error: Any) -> str:
    """A line on options or arguments that the command does not take."""
    context = error.ctx
    command = context.command_path if context else "attnbench"
    text = re.sub(r"'(--?[\w-]+)'", r"\1", error.format_message().rstrip("."))
    if unknown := re.match(r"No such command '(.*?)'", text):
        from ..scenario.names import shipped  # which imports what reads scenarios

        if unknown[1] in shipped():
            text += f"; a scenario is measured with `attnbench run {unknown[1]}`"
        elif "Did you mean" not in text:
            text += f"; {instead_of(unknown[1], context.command.list_commands(context))}"
    text = " ".join(text.split())
    return visible(f"{text}{'' if text.endswith('?') else ';'} see `{command} -h`")
