"""The command `attnbench`: each verb parses its options and calls what computes and prints.

Heavy packages are imported inside the verbs, so that help and listings answer at once.
"""

import os
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from ... import __version__
from ..files.errors import BadInput, instead_of, shown
from ..run.packs import packs
from ..verbs import shell
from ..verbs.app import verb as verb_of
from ..verbs.output import lasting_output, make_streams_safe
from .help import SHORT, of_program
from .machine import doctor
from .options import argument, option
from .run import run
from .verbs import FIRST_SCREEN, Verb, Verbs, command, exit_code
from .wall import wall

FIRST = (("run", "advise", "wall"), ("show", "compare"), ("list", "doctor"))
"""The commands of the first screen."""


OTHERS = ("show", "compare", "list", "gate", "report")


class Program(Verbs):
    """The commands, of which the first screen has a few."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        for name in OTHERS:
            self.add_command(shell.command(name, verb_of(name)), name)

    examples = ("attnbench run quickstart",)

    def format_help(self, ctx: Any, formatter: Any) -> None:
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
        bool, option("--version", "Print the version.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    pass


VERBS = (
    (
        FIRST_SCREEN,
        run,
        "attnbench run quickstart",
        "attnbench run --backends fused,sdpa --seq-len 512,2k --heads 8 --head-dim 64",
        "attnbench run my.yaml --set grid.seq_len=[512,1k] --dry-run",
        "attnbench run --resume latest",
        "attnbench run memory_wall --memory-gib 2 --plan quick",
        "attnbench run --backends my_attention:attend,sdpa --seq-len 512 --heads 8 --head-dim 64",
        "attnbench run --model llama-3-8b --seq-len 512,2k --backends fused,sdpa",
        "attnbench run --checkpoint my_model/",
        "attnbench run quickstart --on ray --devices 8",
    ),
    (
        FIRST_SCREEN,
        wall,
        "attnbench wall --heads 32 --kv-heads 8 --head-dim 128 --memory-gib 4",
        "attnbench wall --backends naive,fused --heads 8 --d-model 512 --memory-gib 1"
        " --tolerance 0.1% --time-budget 600",
        "attnbench wall --backends hf:eager,hf:sdpa --heads 8 --head-dim 64 --dtype bf16 --dry-run",
    ),
    (FIRST_SCREEN, doctor, "attnbench doctor", "attnbench doctor --deep"),
)
"""Group, verb and examples, the verb's name first; or group, verbs and their common name."""
USUAL = {
    "run": "--backends --seq-len --heads --head-dim --model --device --plan --memory-gib --set"
    " --dry-run --resume",
    "wall": "--backends --heads --kv-heads --head-dim --dtype --causal --memory-gib --tolerance"
    " --time-budget --device --dry-run --runs",
    "advise": "--context --batch --dtype --phase --memory-gib --max-seconds --measure --device"
    " --output --json --runs",
    "doctor": "--deep --device --runs --wait --json",
}
"""The options of -h, of commands that have many more."""
OF_PACKS = [
    (one.panel, one.command, *(one.examples or [one.name])) for p in packs() for one in p.verbs
]
for panel, verb, *words in (*VERBS, *OF_PACKS):
    if isinstance(verb, typer.Typer):
        app.add_typer(verb, name=words[0], rich_help_panel=panel)
    else:
        usual = USUAL.get(verb.__name__, "").split()
        command(app, *words, panel=panel, usual=usual)(verb)


@app.command("help", cls=Verb, hidden=True)
def help_(
    context: typer.Context,
    words: Annotated[list[str] | None, argument("COMMAND", "A command's name, or all.")] = None,
) -> None:
    """Say what a command does, with all its options; without a name: the first screen."""
    names = words or []
    context.meta[SHORT] = not names
    of: Any = context.parent
    found: Any = of.command
    for name in names if names != ["all"] else ():
        known = getattr(found, "commands", {})
        if name not in known:
            raise BadInput(f"no command {shown(name)}; {instead_of(name, ['all', *known])}")
        found = known[name]
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
