"""The command `attnbench`: each verb parses its options and calls what computes and prints.

Heavy packages are imported inside the verbs, so that help and listings answer at once.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import typer

from ... import __version__
from ..files.errors import BadInput
from ..run.packs import opted, packs, run_options, selected
from . import completion, flags
from . import machine as machine_verbs
from . import report as report_verbs
from .claims import claims
from .compare import baseline_app, compare
from .exit_code import exit_code
from .flags import DEFAULT_ROOT, EARLIER, Root
from .gate import gate
from .lists import list_app
from .measuring import listening, measure_all, print_dry_run, read_scenarios
from .output import lasting_output, make_streams_safe
from .texts import as_changes, given
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
        return app.command(**settings, epilog=examples(*lines))(function)  # type: ignore[arg-type]

    return decorate


@app.callback()
def top(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


@verb(
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
)
@flags.grouped(axes=flags.axes(), of_packs=run_options())
def run(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCENARIO",
            help="Names of shipped scenarios, YAML files, or a suite file, which lists scenarios.",
            autocompletion=completion.scenarios,
        ),
    ] = None,
    backends: flags.Backends = None,
    backend: flags.Imported = None,
    allow_import: flags.AllowImport = False,
    axes: Mapping[str, str | bool] = {},
    head_dim: flags.HeadDim = None,
    model: flags.OfModel = None,
    phase: flags.OfPhase = None,
    tp: flags.Tp = None,
    baseline: flags.Baseline = None,
    only: flags.Only = None,
    skip: flags.Skip = None,
    sets: flags.Sets = None,
    pythons: flags.Pythons = None,
    device: flags.Where = None,
    threads: flags.Threads = None,
    shard: flags.InShard = None,
    replicate: flags.Replicate = None,
    out: Root = DEFAULT_ROOT,
    of_packs: Mapping[str, Any] = {},
    dry_run: flags.DryRun = False,
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Measure what this run still lacks.",
            autocompletion=completion.runs,
            rich_help_panel=EARLIER,
        ),
    ] = None,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed",
            help="With --resume: crashed, failed and timed-out cases again.",
            rich_help_panel=EARLIER,
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="With --resume: even in another environment.",
            rich_help_panel=EARLIER,
        ),
    ] = False,
    timeout: flags.Timeout = None,
    memory_gib: flags.MemoryGib = None,
    wait: flags.Wait = False,
    plan: flags.PlanName = None,
    seed: flags.Seed = 0,
    quiet: flags.Quiet = False,
    as_json: flags.AsJson = False,
) -> None:
    """Measure a scenario, several of them as a suite, or a grid given by options.

    Prints the folder of the run or the suite; progress goes to stderr.
    """
    fields = {
        **given({"backends": backends}),
        **axes,
        **given({"head_dim": head_dim, "baseline": baseline}),
        **given({"model": model, "phase": phase, "tp": None if tp is None else str(tp)}),
    }
    changes = [
        *(sets or []),
        *as_changes(device, timeout, memory_gib, plan),
    ]
    if resume is not None and (
        scenarios or fields or backend or changes or only or skip or shard or replicate or dry_run
    ):
        raise BadInput(
            "--resume: the run is measured as it was planned; leave out scenarios, axes,"
            " --backend, --set, --only, --skip, --shard, --replicate, --plan, --device, --timeout,"
            " --memory-gib and --dry-run"
        )
    if resume is None and (retry_failed or force):
        raise BadInput("--retry-failed and --force belong to --resume RUN")

    from ..process.interpreter import read_interpreters
    from ..run.start import resume_run, start_run
    from ..run.suite import Suite
    from ..scenario.of_attachments import alone, beside
    from ..scenario.selection import (
        Selection,
        backends_of,
        refuse_imports,
        refuse_too_many,
        refuse_unmatched,
    )
    from ..scenario.shards import read_shard
    from ..store.baselines import find
    from ..store.suites import is_suite
    from .suite import measure_suite, planned_entries, suite_name

    progress, options = listening(
        allow_import=allow_import, wait=wait, quiet=quiet, as_json=as_json
    )
    options = opted(options, of_packs, dry_run=dry_run)
    measure = partial(measure_all, progress=progress, options=options, quiet=quiet, as_json=as_json)
    complete = partial(
        measure_suite,
        options=options,
        progress=progress,
        quiet=quiet,
        as_json=as_json,
        retry_failed=retry_failed,
        force=force,
    )
    interpreters = read_interpreters(pythons or ())
    attachments = selected(Selection(), of_packs).attachments
    if resume is not None:
        path = find(resume, out, unfinished=True)
        if is_suite(path):
            return complete(Suite(path, interpreters, attachments, retry_failed=retry_failed))
        again = partial(resume_run, path, interpreters=interpreters, force=force)
        return measure([partial(again, attachments=attachments, retry_failed=retry_failed)])
    own = None
    if attachments and not (scenarios or fields):
        entries, several = [alone(attachments, changes)], False
    else:
        more = backends_of(backend or ())
        entries, several = read_scenarios(scenarios or [], fields, changes, more)
        own = beside(attachments, changes) if attachments and several else None
    selection = Selection(
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        interpreters=interpreters,
        copies=replicate or 1,
        attachments=attachments,
        shard=None if shard is None else read_shard(shard),
    )
    planned = planned_entries(entries, selection, own)
    refuse_unmatched((entry.scenario, entry.selection) for entry in planned)
    refuse_too_many((entry.scenario for entry in planned), selection)
    if dry_run:
        return print_dry_run(planned, out, of_packs)
    for entry in planned:
        refuse_imports(entry.scenario.backends, allowed=allow_import)
    if several:
        name = suite_name(scenarios or [])
        return complete(Suite.create(out, name, planned, seed, options.command))
    (one,) = planned
    return measure([partial(start_run, one.scenario, out, seed, one.selection)])


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
        typer.Argument(
            metavar="SCENARIO",
            help="YAML files of scenarios or suites, or shipped names.",
            autocompletion=completion.scenarios,
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
def schema(
    suite: Annotated[bool, typer.Option("--suite", help="Of suite files.")] = False,
) -> None:
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
