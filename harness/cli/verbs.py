"""What commands have in common: their help, mistakes in their options, and how they end."""

import errno
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..files.errors import BadInput, EnvironmentUnmet, Refusal, StoreError
from ..files.printable import visible
from .options import expanded

MEASURE, READ, MACHINE, FILES = "Measure", "Read and compare", "This machine", "Files"
"""The groups of verbs in the help."""
# Its classes are not in typer's own names, and their module differs between versions.
UsageError: Any = typer.BadParameter.__base__


def without_type(parameters: list[Any]) -> list[Any]:
    """Flags take no value, so their help has no type."""
    for one in parameters:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    return parameters


@contextmanager
def mistakes_of(context: Any) -> Iterator[None]:
    """Click's parser does not say of which command an option lacks its value."""
    try:
        yield
    except UsageError as error:
        error.ctx = error.ctx or context
        raise


class Verb(TyperCommand):
    """A command in whose help flags have no type, and paragraphs are lines."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.help = folded(self.help or "")

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override]
        return without_type(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with mistakes_of(ctx):
            return super().parse_args(ctx, args)


class Verbs(TyperGroup):
    """A group of commands in whose help flags have no type."""

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override]
        return without_type(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with mistakes_of(ctx):
            return super().parse_args(ctx, args)


def examples(*lines: str) -> str:
    """The end of a verb's help; a line per example."""
    return "\n\n".join(["Examples:", *(line.replace("[", r"\[") for line in lines)])


def command(
    app: typer.Typer, *lines: str, panel: str | None = None, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator: a function as a verb, with groups of options as parameters (options.expanded).

    `lines`: examples. `panel`: its group in the help.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        app.command(
            name,
            cls=Verb,
            rich_help_panel=panel,
            help=inspect.getdoc(function) or "",
            epilog=examples(*lines) if lines else None,
        )(expanded(function))
        return function

    return decorate


def folded(text: str) -> str:
    """With paragraphs of one line each."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


# ---- the end -------------------------------------------------------------------------------------


def exit_code(app: typer.Typer) -> int:
    """Run the command line. What is refused is one line on stderr; a bug is a traceback."""
    try:
        code = app(prog_name="attnbench", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
        else:
            sys.stderr.write(f"{misused(error)}\n")
        return int(error.exit_code)
    except typer.Abort:
        return 1
    except Refusal as refusal:
        sys.stderr.write(f"{refusal}\n")
        if isinstance(refusal, StoreError):
            for row in refusal.unsaved:
                sys.stderr.write(json.dumps(row) + "\n")
        return refusal.exit_code
    except ValueError as error:
        from ...impls import BadBackend

        if not isinstance(error, BadBackend):  # a user's file
            raise
        sys.stderr.write(f"{error}\n")
        return BadInput.exit_code
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        sys.stderr.write(f"{error.strerror}: wanted at least 32; raise the limit: ulimit -n 1024\n")
        return EnvironmentUnmet.exit_code
    except KeyboardInterrupt:
        return 130


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
    return visible(f"{command}: {' '.join(text.split())}; see `{command} -h`")
