"""The command `attnbench`: each verb parses its options and calls what computes and prints.

Heavy packages are imported inside the verbs, so that help and listings answer at once.
"""

import json
import os
import sys
from contextlib import suppress
from typing import Annotated

import typer

from ... import __version__
from ..files.errors import BadInput
from ..run.packs import packs
from . import completion
from .claims import claims
from .compare import baseline_app, compare
from .gate import gate
from .lists import list_app
from .machine import doctor, selfcheck
from .options import argument, option, switch
from .output import lasting_output, make_streams_safe
from .report import export, report, show
from .run import run
from .verbs import FILES, MACHINE, MEASURE, READ, Verbs, command, examples, exit_code
from .wall import wall

FILES_OR_NAMES = "YAML files of scenarios or suites, or shipped names."
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


@app.callback()
def top(
    version: Annotated[
        bool, option("--version", "Print the version.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    pass


VERBS = (
    (
        MEASURE,
        run,
        "attnbench run quickstart",
        "attnbench run memory_wall --memory-gib 2 --plan quick",
        "attnbench run --backends fused,sdpa --seq-len 512,2k --heads 32 --kv-heads 8"
        " --head-dim 128 --dtype bf16 --causal",
        "attnbench run my.yaml --set grid.seq_len=[512,1k] --dry-run",
        "attnbench run --model llama-3-8b --seq-len 512,2k --backends fused,sdpa",
        "attnbench run --checkpoint my_model/",
        "attnbench run --resume latest",
        "attnbench run quickstart --on ray --devices 8",
    ),
    (
        MEASURE,
        wall,
        "attnbench wall --heads 32 --kv-heads 8 --head-dim 128 --memory-gib 4",
        "attnbench wall --backends naive,fused --heads 8 --d-model 512 --memory-gib 1"
        " --tolerance 0.1% --budget 600",
        "attnbench wall --backends hf:eager,hf:sdpa --heads 8 --head-dim 64 --dtype bf16 --dry-run",
    ),
    (MEASURE, claims, "attnbench claims", "attnbench claims --run latest"),
    (
        MEASURE,
        gate,
        "attnbench gate ../base . --scenario bench.yaml --backend-dir attention",
        "attnbench gate main . --scenario quickstart --turns 7 --gate 'latency: 3%'",
    ),
    (READ, show, "attnbench show", "attnbench show quickstart --sections memory,heads"),
    (
        READ,
        report,
        "attnbench report latest --open",
        "attnbench report quickstart memory_wall -o page.html",
        "attnbench report latest --format md --figures plots",
    ),
    (
        READ,
        compare,
        "attnbench compare main latest --gate 'latency: 5%, peak_bytes: 0%'",
        "attnbench compare latest --baseline fused --only sdpa",
        "attnbench compare latest@old latest@new",
        "attnbench compare base/ head/ --turns --format md",
    ),
    (READ, baseline_app, "baseline"),
    (
        READ,
        export,
        "attnbench export latest -o cases.csv",
        "attnbench export latest --format parquet -o cases.parquet",
    ),
    (READ, list_app, "list"),
    (MACHINE, doctor, "attnbench doctor", "attnbench doctor --calibrate --device cuda"),
    (MACHINE, selfcheck, "attnbench selfcheck", "attnbench selfcheck --court --device cpu"),
)
"""In the order of the help: group, verb and examples; or group, verbs and their common name."""
MORE = [(one.panel, one.command, *(one.examples or [one.name])) for p in packs() for one in p.verbs]
for panel, verb, *words in (*VERBS, *MORE):
    if isinstance(verb, typer.Typer):
        app.add_typer(verb, name=words[0], rich_help_panel=panel)
    else:
        command(app, *words, panel=panel)(verb)


@command(app, "attnbench validate my.yaml", panel=FILES)
def validate(
    scenarios: Annotated[list[str], argument("SCENARIO", FILES_OR_NAMES, completion.scenarios)],
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


@command(
    app,
    "attnbench schema > schema.json",
    "attnbench schema --suite > suite_schema.json",
    panel=FILES,
)
def schema(suite: bool = switch("--suite", "Of suite files.")) -> None:
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
