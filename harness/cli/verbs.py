"""What commands have in common: their help, and mistakes in their options."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

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
