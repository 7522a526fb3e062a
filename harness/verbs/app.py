"""The command `attnbench`: finds a verb by its name, and runs it.

A verb's file is imported when it is asked for, and nothing heavy with it, so that help and listings
answer at once.
"""

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any

import typer

from ... import __version__
from ..files.errors import BadInput, instead_of, shown
from .help import SHORT, of_program
from .output import lasting_output, make_streams_safe
from .request import Verb
from .shell import Group, command, exit_code

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
    "report": "verbs.show",
    "merge": "fleet.merge_verb",
}
"""The files of the verbs, of packs too; each has its `Verb` in VERBS, by name."""
FIRST = (("run", "advise", "wall"), ("show", "compare"), ("list", "doctor"))
"""The commands of the first screen."""


def verb(name: str) -> Verb:
    found: Verb = import_module(f"{HARNESS}.{HOMES[name]}").VERBS[name]
    return found


class Program(Group):
    """The commands, each made when it is asked for."""

    examples = ("attnbench run quickstart",)

    def list_commands(self, ctx: Any) -> list[str]:
        return [*HOMES, "help"]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands and cmd_name in HOMES:
            self.commands[cmd_name] = command(cmd_name, verb(cmd_name))
        return self.commands.get(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for name in HOMES:
            self.get_command(ctx, name)
        formatter.write(of_program(self, FIRST, short=ctx.meta.get(SHORT, False)))


app = typer.Typer(
    cls=Program,
    help="Measure multi-head attention: time, exact memory and GPU utilization, with intervals.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
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


@app.command("help", hidden=True)
def help_(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="A command's name, or all.")
    ] = None,
) -> None:
    """Say what a command does, with all its options; without a name: the first screen."""
    names = words or []
    context.meta[SHORT] = not names
    of: Any = context.parent
    found: Any = of.command
    for name in names[:1] if names != ["all"] else ():
        found = of.command.get_command(of, name)
        if found is None:
            raise BadInput(f"no command {shown(name)}; {instead_of(name, ['all', *HOMES])}")
        of = type(of)(found, info_name=name, parent=of)
    typer.echo(found.get_help(of))


def main() -> None:
    """Run the command line; a refusal is printed without a traceback and sets the exit code."""
    with lasting_output() as output:
        make_streams_safe()
        code = exit_code(app)
    # A reader that has read enough is no news.
    if output.failure and not isinstance(output.failure, BrokenPipeError):
        lost = f"error: stdout: {output.failure.strerror}; what was printed there is lost\n"
        with suppress(OSError):  # stderr may be gone too
            os.write(2, lost.encode())
    sys.exit(output.exit_code(code))
