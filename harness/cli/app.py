"""The command `attnbench`: each verb parses its options and calls what computes and prints.

Heavy packages are imported inside the verbs, so that help and listings answer at once.
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import typer

from ... import __version__
from ..files.errors import BadInput
from ..run.packs import packs
from . import completion
from . import machine as machine_verbs
from . import report as report_verbs
from .claims import claims
from .compare import baseline_app, compare
from .exit_code import exit_code
from .gate import gate
from .lists import list_app
from .options import argument, expanded, option
from .output import lasting_output, make_streams_safe
from .run import run
from .verbs import FILES, MACHINE, MEASURE, READ, Verb, Verbs, examples, unfolded
from .wall import wall

app = typer.Typer(
    cls=Verbs,
    help=(
        "Benchmark multi-head attention: latency, exact memory and GPU utilization, with intervals"
        " and an offline report."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "attnbench run quickstart",
        "attnbench report latest --open",
        "attnbench wall --heads 32 --kv-heads 8 --head-dim 128 --memory-gib 4",
    ),
)


def print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"attnbench {__version__}")
        raise typer.Exit


def verb(panel: str, *lines: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator: a function as a verb, in a group of the help and with examples."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        settings = {"rich_help_panel": panel, "help": unfolded(function), "cls": Verb}
        typed = expanded(function)
        return app.command(**settings, epilog=examples(*lines))(typed)  # type: ignore[arg-type]

    return decorate


@app.callback()
def top(
    version: Annotated[
        bool, option("--version", "Print the version.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    pass


verb(
    MEASURE,
    "attnbench run quickstart",
    "attnbench run memory_wall --memory-gib 2 --plan quick",
    "attnbench run --backends fused,sdpa --seq-len 512,2k --heads 32 --kv-heads 8"
    " --head-dim 128 --dtype bf16 --causal",
    "attnbench run my.yaml --set grid.seq_len=[512,1k] --dry-run",
    "attnbench run --model llama-3-8b --seq-len 512,2k --backends fused,sdpa",
    "attnbench run --checkpoint my_model/",
    "attnbench run --resume latest",
    "attnbench run quickstart --on ray --devices 8",
)(run)
verb(
    MEASURE,
    "attnbench wall --heads 32 --kv-heads 8 --head-dim 128 --memory-gib 4",
    "attnbench wall --backends naive,fused --heads 8 --d-model 512 --memory-gib 1"
    " --tolerance 0.1% --budget 600",
    "attnbench wall --backends hf:eager,hf:sdpa --heads 8 --head-dim 64 --dtype bf16 --dry-run",
)(wall)
verb(MEASURE, "attnbench claims", "attnbench claims --run latest")(claims)
verb(
    MEASURE,
    "attnbench gate ../base . --scenario bench.yaml --backend-dir attention",
    "attnbench gate main . --scenario quickstart --turns 7 --gate 'latency: 3%'",
)(gate)
verb(READ, "attnbench show", "attnbench show quickstart --sections memory,heads")(report_verbs.show)
verb(
    READ,
    "attnbench report latest --open",
    "attnbench report quickstart memory_wall -o page.html",
    "attnbench report latest --format md --figures plots",
)(report_verbs.report)
verb(
    READ,
    "attnbench compare main latest --gate 'latency: 5%, peak_bytes: 0%'",
    "attnbench compare latest --baseline fused --only sdpa",
    "attnbench compare latest@old latest@new",
    "attnbench compare base/ head/ --turns --format md",
)(compare)
app.add_typer(baseline_app, name="baseline", rich_help_panel=READ)
verb(
    READ,
    "attnbench export latest -o cases.csv",
    "attnbench export latest --format parquet -o cases.parquet",
)(report_verbs.export)
app.add_typer(list_app, name="list", rich_help_panel=READ)
verb(MACHINE, "attnbench doctor", "attnbench doctor --calibrate --device cuda")(
    machine_verbs.doctor
)
verb(MACHINE, "attnbench selfcheck", "attnbench selfcheck --court --device cpu")(
    machine_verbs.selfcheck
)
for one in (one for pack in packs() for one in pack.verbs):
    if isinstance(one.command, typer.Typer):
        app.add_typer(one.command, name=one.name, rich_help_panel=one.panel)
    else:
        verb(one.panel, *one.examples)(one.command)


@verb(FILES, "attnbench validate my.yaml")
def validate(
    scenarios: Annotated[
        list[str],
        argument(
            "SCENARIO", "YAML files of scenarios or suites, or shipped names.", completion.scenarios
        ),
    ],
) -> None:
    """Check scenario and suite files; every mistake is named with its place."""
    from ..scenario import load_entries

    problems: list[str] = []
    for name in scenarios:
        try:
            file = load_entries(name)
        except BadInput as error:
            problems += error.problems
        else:
            planned = [entry.scenario for entry in file.entries]
            cpu, gpu = (sum(one.count(device) for one in planned) for device in ("cpu", "cuda"))
            suite = f"a suite of {len(planned)}, " if file.is_list else ""
            cases = "case" if cpu == 1 else "cases"
            typer.echo(f"{name}: ok, {suite}{cpu} {cases} on a CPU, {gpu} on a GPU")
    if problems:
        raise BadInput(*problems)


@verb(FILES, "attnbench schema > schema.json", "attnbench schema --suite > suite_schema.json")
def schema(suite: Annotated[bool, option("--suite", "Of suite files.")] = False) -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from ..scenario import schema as scenario_schema

    typer.echo(json.dumps(scenario_schema(of_suites=suite), indent=2))


def main() -> None:
    """Run the command line; a refusal is printed without a traceback and sets the exit code."""
    with lasting_output() as output:
        make_streams_safe()
        code = exit_code(app)
    # A reader that has read enough is no news.
    if output.failure and not isinstance(output.failure, BrokenPipeError):
        lost = f"stdout: {output.failure.strerror}; what was printed there is lost\n"
        with suppress(OSError):  # stderr may be gone too
            os.write(2, lost.encode())
    sys.exit(output.exit_code(code))
