"""The command `attnbench`: finds a verb by its name, and runs it.

A verb's file is imported when it is asked for, and nothing heavy with it, so that help and listings
answer at once.
"""

import os
import sys
from contextlib import suppress
from importlib import import_module
from itertools import chain
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ... import __version__
from .output import LOST, lasting_output, make_streams_safe
from .request import Verb
from .shell import PLAIN, SHORT, Parsed, command, exit_code, of_program

HARNESS = __name__.rpartition(".verbs.")[0]
HOMES = {
    "run": "verbs.run",
    "advise": "advise.verb",
    "wall": "verbs.wall",
    "show": "verbs.show",
    "compare": "verbs.compare",
    "list": "verbs.listing",
    "doctor": "verbs.doctor",
    "gate": "verbs.gate",
    "merge": "fleet.merge_verb",
    "report": "verbs.show",
}
"""The files of the verbs, of packs too; each has its `Verb` in VERBS, by name."""
HIDDEN = ("report",)  # which `show --open` is as well
FIRST = (("run", "advise", "wall"), ("show", "compare"), ("list", "doctor"))
"""The commands of the first screen."""


def verb(name: str) -> Verb:
    found: Verb = import_module(f"{HARNESS}.{HOMES[name]}").VERBS[name]
    return found


class Program(Parsed, TyperGroup):
    """The commands, each made when it is asked for."""

    examples = ("attnbench run quickstart",)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """`help run` is `run --help`, `help all` is `--help`, and `help` the first screen."""
        if args[:1] == ["help"]:
            args = [*filter(lambda word: word != "all", args[1:]), "--help"] if args[1:] else ["-h"]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return [*HOMES]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands and cmd_name in HOMES:
            self.commands[cmd_name] = command(cmd_name, verb(cmd_name))
        return self.commands.get(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        short = ctx.meta.get(SHORT, False)
        verbs = {
            name: verb(name) for name in (chain(*FIRST) if short else HOMES) if name not in HIDDEN
        }
        formatter.write(of_program(self, FIRST, verbs, short=short))


app = typer.Typer(
    cls=Program,
    help="Measure multi-head attention: time, exact memory, GPU utilization, with intervals.",
    no_args_is_help=True,
    **PLAIN,
)


def print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"attnbench {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; a refusal is printed without a traceback and sets the exit code."""
    with lasting_output() as stdout:
        make_streams_safe()
        code = exit_code(app)
    failure = stdout.failure
    # A reader that has read enough is no news.
    if failure and not isinstance(failure, BrokenPipeError):
        lost = f"error: stdout: {failure.strerror}; what was printed there is lost\n"
        with suppress(OSError):  # stderr may be gone too
            os.write(2, lost.encode())
    sys.exit(LOST if failure and not code else code)
