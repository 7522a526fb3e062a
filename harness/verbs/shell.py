"""A verb on the command line: an option for each field of its request, and how commands end."""

import errno
import inspect
import json
import re
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from ...impls import BadBackend
from ..files.errors import BadInput, EnvironmentUnmet, Refusal, Spelling, StoreError, instead_of
from ..files.printable import visible
from . import completion
from .fields import GROUPS
from .help import SHORT, of_command
from .request import Option, Verb, checked, declared

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
