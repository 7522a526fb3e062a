"""The command `attnbench`: each verb parses its options and calls what computes and prints.

Heavy packages are imported inside the verbs, so that help and listings answer at once.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from ..errors import BadInput, Refusal, StoreError
from . import flags
from . import machine as machine_verbs
from . import report as report_verbs
from .claims import claims
from .compare import baseline_app, compare
from .flags import DEFAULT_ROOT, Device, Root
from .kernels import kernels_app
from .lists import list_app

app = typer.Typer(
    help=(
        "Benchmark multi-head attention: latency, exact memory and GPU utilization, with intervals"
        " and an offline report."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(list_app, name="list")
app.add_typer(baseline_app, name="baseline")
app.add_typer(kernels_app, name="kernels")


@app.command()
@flags.axis_options()
def run(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SCENARIO]...", help="YAML files or names of shipped scenarios."),
    ] = None,
    backends: Annotated[
        str | None, typer.Option(help="Instead of a scenario: backends, as naive,fused,sdpa.")
    ] = None,
    backend: flags.Imported = None,
    allow_import: flags.AllowImport = False,
    axes: Mapping[str, str | bool] = {},
    baseline: Annotated[
        str | None, typer.Option(help="Backend that ratios are taken against.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Measure only cases whose id matches; repeatable."),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Leave out cases whose id matches; repeatable."),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="Change a field of the scenario; repeatable."),
    ] = None,
    pythons: Annotated[
        list[str] | None,
        typer.Option(
            "--python",
            metavar="NAME=PATH",
            help="Measure in this interpreter; two or more are interleaved and compared.",
        ),
    ] = None,
    device: flags.Where = None,
    out: Root = DEFAULT_ROOT,
    dry_run: flags.DryRun = False,
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Measure what this run still lacks.")
    ] = None,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed", help="With --resume: crashed, failed and timed-out cases again."
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --resume: even in another environment.")
    ] = False,
    timeout: flags.Timeout = None,
    wait: flags.Wait = False,
    plan: Annotated[str | None, typer.Option(help="quick, standard or rigorous.")] = None,
    seed: flags.Seed = 0,
    quiet: flags.Quiet = False,
    as_json: flags.AsJson = False,
) -> None:
    """Measure scenarios, or a grid given by options.

    Prints the run folder; progress goes to stderr.
    """
    fields = {**given({"backends": backends}), **axes, **given({"baseline": baseline})}
    changes = [*(sets or []), *as_changes(device, timeout), *([f"plan={plan}"] if plan else [])]
    if resume is not None and (
        scenarios or fields or backend or changes or only or skip or pythons or dry_run
    ):
        raise BadInput(
            "--resume: the run is measured as it was planned; leave out scenarios, axes, --backend,"
            " --set, --only, --skip, --python and --dry-run"
        )
    if resume is None and (retry_failed or force):
        raise BadInput("--retry-failed and --force belong to --resume RUN")

    from ..baselines import find_run
    from ..process.interpreter import read_interpreters
    from ..run.start import resume_run, start_run
    from ..selection import Selection, backends_of, refuse_imports, refuse_too_many

    measure = partial(
        measure_all, allow_import=allow_import, wait=wait, quiet=quiet, as_json=as_json
    )
    if resume is not None:
        path = find_run(resume, out)
        return measure([partial(resume_run, path, retry_failed=retry_failed, force=force)])
    planned = read_scenarios(scenarios or [], fields, changes, backends_of(backend or ()))
    selection = Selection(
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        interpreters=read_interpreters(pythons or ()),
    )
    refuse_too_many(planned, selection)
    if dry_run:
        return print_dry_run(planned, selection)
    for scenario in planned:
        refuse_imports(scenario.backends, allowed=allow_import)
    return measure([partial(start_run, scenario, out, seed, selection) for scenario in planned])


@app.command()
@flags.axis_options("seq_len")
def wall(
    backends: Annotated[str | None, typer.Option(help="Backends, as naive,fused,sdpa.")] = None,
    backend: flags.Imported = None,
    allow_import: flags.AllowImport = False,
    axes: Mapping[str, str | bool] = {},
    memory_gib: Annotated[
        float | None,
        typer.Option(metavar="G", help="Budget for inputs and peak; a safe share if not given."),
    ] = None,
    device: flags.Where = None,
    out: Root = DEFAULT_ROOT,
    dry_run: flags.DryRun = False,
    timeout: flags.Timeout = None,
    wait: flags.Wait = False,
    seed: flags.Seed = 0,
    quiet: flags.Quiet = False,
    as_json: flags.AsJson = False,
) -> None:
    """Find the longest sequence that fits into memory: predicted, then bisected.

    Prints the run folder; progress goes to stderr.
    """
    from ..run.start import start_run
    from ..scenario import from_axes
    from ..selection import Selection, backends_of

    scenario = from_axes(
        {**given({"backends": backends}), **axes},
        [
            *as_changes(device, timeout),
            *([f"limits.memory_gib={memory_gib}"] if memory_gib is not None else []),
        ],
        backends_of(backend or ()),
        find_wall=True,
    )
    if dry_run:
        return print_dry_run([scenario], Selection())
    jobs = [partial(start_run, scenario, out, seed, Selection())]
    return measure_all(jobs, allow_import=allow_import, wait=wait, quiet=quiet, as_json=as_json)


def given(options: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in options.items() if value is not None}


def as_changes(device: Device | None, timeout: float | None) -> list[str]:
    """Options that set a field of a scenario, as --set takes them."""
    return [
        *([f"device={device}"] if device else []),
        *([f"limits.timeout_s={timeout}"] if timeout is not None else []),
    ]


def read_scenarios(
    scenarios: list[str],
    axes: Mapping[str, str | bool],
    changes: list[str],
    more_backends: Mapping[str, str],
) -> list[Any]:
    """All scenarios; a mistake in the last one is found before the first one is measured."""
    from ..scenario import from_axes, load

    if scenarios and axes:
        option = f"--{next(iter(axes)).replace('_', '-')}"
        raise BadInput(
            f"{option}: cannot be combined with a scenario; change a scenario with --set"
            " grid.seq_len=[512,1k]"
        )
    if not scenarios and not axes:
        raise BadInput(
            "nothing to run; name a scenario (see attnbench list scenarios), or give axes such as"
            " --backends naive,fused --seq-len 1k --d-model 512 --heads 8"
        )
    if axes:
        return [from_axes(axes, changes, more_backends)]
    return [load(name, changes, more_backends) for name in scenarios]


def print_dry_run(scenarios: list[Any], selection: Any) -> None:
    """What is known before anything runs, on stdout."""
    from ..process.interpreter import check_interpreters
    from ..terminal import busy, echo

    with busy("starting"):
        from .dry_run import preflight_tables

    check_interpreters(selection.interpreters)
    for scenario in scenarios:
        for table in preflight_tables(scenario, selection):
            echo(table)


def measure_all(
    jobs: Sequence[Callable[[Any], Any]],
    *,
    allow_import: bool,
    wait: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Do one run after the other; exit with the worst exit code."""
    from .. import terminal
    from ..run.start import RunOptions

    progress = terminal.progress(quiet=quiet, as_json=as_json)
    options = RunOptions(
        command=["attnbench", *sys.argv[1:]],
        listener=progress,
        wait=wait,
        allow_import=allow_import,
    )
    worst = 0
    for job in jobs:
        progress.start("starting a worker")
        try:
            result = job(options)
        finally:
            progress.end()
        print_result(result, quiet=quiet, as_json=as_json)
        worst = max(worst, result.exit_code)
        if result.signal is not None:
            break
    raise typer.Exit(worst)


def print_result(result: Any, *, quiet: bool, as_json: bool) -> None:
    """Print the run folder on stdout, and a summary on stderr."""
    if as_json:
        end = {"reason": "end", "run": str(result.path), "statuses": dict(result.statuses)}
        typer.echo(json.dumps(end))
        return
    typer.echo(result.path)
    if not quiet:
        from .. import terminal

        with terminal.busy("reading the results"):
            from ...reports.pages.report import open_report
            from ...reports.pages.terminal import terminal_summary
            from .wall_table import found_table

            answers = terminal_summary(open_report([result.path]))
        terminal.print_summary(result.statuses, answers, found_table(result.path), result.path)


@app.command()
def validate(
    scenarios: Annotated[
        list[str],
        typer.Argument(metavar="SCENARIO...", help="YAML files or names of shipped scenarios."),
    ],
) -> None:
    """Check scenario files; every mistake is named with its place."""
    from ..scenario import load

    problems: list[str] = []
    for name in scenarios:
        try:
            scenario = load(name)
        except BadInput as error:
            problems += error.problems
        else:
            cpu, gpu = scenario.count("cpu"), scenario.count("cuda")
            typer.echo(f"{name}: ok, {cpu} cases on a CPU, {gpu} on a GPU")
    if problems:
        raise BadInput(*problems)


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from ..scenario import schema as scenario_schema

    typer.echo(json.dumps(scenario_schema(), indent=2))


app.command()(machine_verbs.doctor)
app.command()(machine_verbs.selfcheck)
app.command()(claims)
app.command()(compare)
app.command()(report_verbs.report)
app.command()(report_verbs.show)
app.command()(report_verbs.export)


def main() -> None:
    """Run the command line; a refusal is printed without a traceback and sets the exit code."""
    try:
        app()
    except Refusal as refusal:
        sys.stderr.write(f"{refusal}\n")
        if isinstance(refusal, StoreError):
            for row in refusal.unsaved:
                sys.stderr.write(json.dumps(row) + "\n")
        sys.exit(refusal.exit_code)
    except ValueError as error:
        from ...impls import BadBackend
        from ...reports.data.read import BadRun

        # a user's file, or a run that something else has changed
        if not isinstance(error, BadRun | BadBackend):
            raise
        sys.stderr.write(f"{error}\n")
        sys.exit(BadInput.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has gone; print nothing more, also not at exit.
        sys.stderr.close()
        sys.exit(1)
