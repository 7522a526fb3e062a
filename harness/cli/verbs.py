"""What commands have in common: their help, mistakes in their options, and how they end."""

import errno
import inspect
import json
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..files.errors import BadInput, EnvironmentUnmet, Refusal, StoreError
from ..files.printable import visible
from .help import SHORT, of_command, of_group
from .options import expanded

FIRST_SCREEN, MORE, CHANGES, PAGES, FILES, DEVELOP = (
    "First",
    "More to measure",
    "Versions of code",
    "Pages and data",
    "Scenario files, shards",
    "To develop attnbench",
)
"""The groups of verbs in the help."""
MOST_PATH = 200  # characters of one in a message
LOOP = "Symlink loop"  # of pathlib, before Python 3.13
# Its classes are not in typer's own names, and their module differs between versions.
UsageError: Any = typer.BadParameter.__base__


class _Parsed:
    """`examples`: of the help, which is short with -h."""

    examples: Sequence[str] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        ctx.meta[SHORT] = "--help" not in args
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc]
        except UsageError as error:  # click's parser does not say of which command it is
            error.ctx = error.ctx or ctx
            raise


class Verb(_Parsed, TyperCommand):
    """A command with a help of our own. `usual`: the options of -h, all if empty."""

    usual: Sequence[str] = ()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(of_command(self, ctx, short=ctx.meta.get(SHORT, False)))


class Verbs(_Parsed, TyperGroup):
    """A group of commands likewise."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(of_group(self, ctx))


def verbs(*examples: str) -> type[Verbs]:
    """A group with these examples."""
    return type("Group", (Verbs,), {"examples": examples})


def command(
    app: typer.Typer,
    *lines: str,
    panel: str | None = None,
    name: str | None = None,
    usual: Sequence[str] = (),
    hidden: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator: a function as a verb, with groups of options as parameters (options.expanded).

    `lines`: examples. `panel`: its group in the help. `usual`: see Verb.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        app.command(
            name,
            cls=type("Command", (Verb,), {"examples": lines, "usual": usual}),
            rich_help_panel=panel,
            hidden=hidden,
            help=inspect.getdoc(function) or "",
        )(expanded(function))
        return function

    return decorate


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
    except ValueError as error:
        from ...impls import BadBackend

        if not isinstance(error, BadBackend):  # a user's file
            raise
        say_error(str(error))
        return BadInput.exit_code
    except OSError as error:
        if error.filename is not None and error.errno not in (errno.EMFILE, errno.ENFILE):
            place = visible(str(error.filename))
            place = place if len(place) <= MOST_PATH else f"{place[:MOST_PATH]}..."
            say_error(f"{place}: {error.strerror}; choose another path")
            return BadInput.exit_code
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        say_error(f"{error.strerror}: wanted at least 32; raise the limit: ulimit -n 1024")
        return EnvironmentUnmet.exit_code
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
    text = re.sub(r"^Invalid value for (.+?): (?:Value error, )?", r"\1: ", error.format_message())
    text = re.sub(r"Input should be (an? )?(?:valid )?", r"wanted \1", text)
    text = re.sub(r", unable to parse .*", "", text).rstrip(".")
    text = re.sub(r"'(--?[\w-]+)'", r"\1", text)
    if re.match(r"Missing argument 'RUN", text):
        text += ", such as latest"
    if unknown := re.match(r"No such command '(.*?)'", text):
        from ..scenario.names import shipped  # which imports what reads scenarios

        if unknown[1] in shipped():
            text += f"; a scenario is measured with `attnbench run {unknown[1]}`"
        elif "Did you mean" not in text:
            text += f"; there are: {', '.join(context.command.list_commands(context))}"
    text = " ".join(text.split())
    return visible(f"{text}{'' if text.endswith('?') else ';'} see `{command} -h`")
