"""The command `attnbench`: verbs that parse, call and hand over; what they call prints and
computes.

Heavy packages are imported inside the verbs, so that help and listings answer at once.
"""

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
    batch: flags.Batch = None,
    seq_len: Annotated[
        str | None, typer.Option(help="Sequence lengths, as 512,1k,8k (1k = 1024).")
    ] = None,
    kv_seq_len: flags.KvSeqLen = None,
    d_model: flags.DModel = None,
    heads: flags.Heads = None,
    kv_heads: flags.KvHeads = None,
    dtype: flags.Dtype = None,
    causal: flags.Causal = False,
    mask: flags.Mask = None,
    window: flags.Window = None,
    passes: flags.Passes = None,
    scope: flags.Scope = None,
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
            help="Measure in this interpreter; two or more take turns and are compared.",
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
    """Measure scenarios, or a grid given by flags. Prints the run folder; progress goes to
    stderr.
    """
    axes = {
        "backends": backends, "batch": batch, "seq_len": seq_len, "kv_seq_len": kv_seq_len, "d_model": d_model, "heads": heads,
        "kv_heads": kv_heads, "dtype": dtype, "causal": causal or None, "mask": mask, "window": window, "passes": passes, "scope": scope,
        "baseline": baseline,
    }  # fmt: skip
    given = {name: value for name, value in axes.items() if value is not None}
    changes = [
        *(sets or []),
        *limits_and_device(device, timeout),
        *([f"plan={plan}"] if plan else []),
    ]
    if resume is not None and (
        scenarios or given or backend or changes or only or skip or pythons or dry_run
    ):
        planned_with = "scenarios, axes, --backend, --set, --only, --skip, --python and --dry-run"
        raise BadInput(f"--resume: takes the run as it was planned; leave out {planned_with}")
    if resume is None and (retry_failed or force):
        raise BadInput("--retry-failed and --force belong to --resume RUN")

    from ..baselines import find_run
    from ..process.interpreter import read_interpreters
    from ..run.permission import names_of, refuse_imports
    from ..run.start import resume_run, start_run
    from ..selection import Choice, refuse_too_many

    planned = (
        planned_scenarios(scenarios or [], given, changes, names_of(backend or ()))
        if resume is None
        else []
    )
    choice = Choice(
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        interpreters=read_interpreters(pythons or ()),
    )
    refuse_too_many(planned, choice)
    if dry_run:
        return foretell(planned, choice)
    for scenario in planned:
        refuse_imports(scenario.backends, allowed=allow_import)
    jobs: list[Callable[[Any], Any]] = [
        partial(start_run, scenario, out, seed, choice) for scenario in planned
    ]
    if resume is not None:
        jobs = [partial(resume_run, find_run(resume, out), retry_failed=retry_failed, force=force)]
    return measure(jobs, allow_import=allow_import, wait=wait, quiet=quiet, as_json=as_json)


@app.command()
def wall(
    backends: Annotated[str | None, typer.Option(help="Backends, as naive,fused,sdpa.")] = None,
    backend: flags.Imported = None,
    allow_import: flags.AllowImport = False,
    batch: flags.Batch = None,
    kv_seq_len: flags.KvSeqLen = None,
    d_model: flags.DModel = None,
    heads: flags.Heads = None,
    kv_heads: flags.KvHeads = None,
    dtype: flags.Dtype = None,
    causal: flags.Causal = False,
    mask: flags.Mask = None,
    window: flags.Window = None,
    passes: flags.Passes = None,
    scope: flags.Scope = None,
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
    """Find the longest sequence that fits into memory: predicted, then bisected. Prints the run
    folder; progress goes to stderr.
    """
    axes = {
        "backends": backends, "batch": batch, "kv_seq_len": kv_seq_len, "d_model": d_model, "heads": heads,
        "kv_heads": kv_heads, "dtype": dtype, "causal": causal or None, "mask": mask, "window": window, "passes": passes, "scope": scope,
    }  # fmt: skip
    from ..run.permission import names_of
    from ..run.start import start_run
    from ..scenario import from_axes
    from ..selection import Choice

    scenario = from_axes(
        {name: value for name, value in axes.items() if value is not None},
        limits_and_device(device, timeout)
        + ([f"limits.memory_gib={memory_gib}"] if memory_gib is not None else []),
        names_of(backend or ()),
        find_wall=True,
    )
    if dry_run:
        return foretell([scenario], Choice())
    jobs = [partial(start_run, scenario, out, seed, Choice())]
    return measure(jobs, allow_import=allow_import, wait=wait, quiet=quiet, as_json=as_json)


def limits_and_device(device: Device | None, timeout: float | None) -> list[str]:
    """Flags of their own as changes of a scenario."""
    return [
        *([f"device={device}"] if device else []),
        *([f"limits.timeout_s={timeout}"] if timeout is not None else []),
    ]


def foretell(scenarios: list[Any], choice: Any) -> None:
    """What is known before anything runs, on stdout: it is what was asked for."""
    from ..process.interpreter import interview
    from ..terminal import echo_table
    from .dry_run import outlook_tables

    interview(choice.interpreters)
    for scenario in scenarios:
        for table in outlook_tables(scenario, choice):
            echo_table(table)


def measure(
    jobs: Sequence[Callable[[Any], Any]],
    *,
    allow_import: bool,
    wait: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """One run after the other, each told in which manner; leaves with the worst exit code."""
    from .. import terminal as show
    from ..run.start import Manner

    progress = (
        show.JsonProgress()
        if as_json
        else show.QuietProgress()
        if quiet
        else show.LiveProgress(show.console())
    )
    manner = Manner(
        command=["attnbench", *sys.argv[1:]],
        listener=progress,
        wait=wait,
        allow_import=allow_import,
    )
    worst = 0
    for job in jobs:
        try:
            outcome = job(manner)
        finally:
            progress.end()
        hand_over(outcome, quiet=quiet, as_json=as_json)
        worst = max(worst, outcome.exit_code)
        if outcome.signal is not None:
            break
    raise typer.Exit(worst)


def planned_scenarios(
    scenarios: list[str],
    axes: Mapping[str, str | bool],
    changes: list[str],
    more_backends: Mapping[str, str],
) -> list[Any]:
    """All scenarios are read before the first one is measured, so that a mistake in the last one
    costs nothing.
    """
    from ..scenario import from_axes, load

    if scenarios and axes:
        flag = f"--{next(iter(axes)).replace('_', '-')}"
        raise BadInput(
            f"{flag}: axes by flags and scenarios exclude each other; change a scenario with --set"
            " grid.seq_len=[512,1k]"
        )
    if not scenarios and not axes:
        example = "--backends naive,fused --seq-len 1k --d-model 512 --heads 8"
        raise BadInput(
            "nothing to run; name a scenario (see attnbench list scenarios), or give axes such as"
            f" {example}"
        )
    if axes:
        return [from_axes(axes, changes, more_backends)]
    return [load(name, changes, more_backends) for name in scenarios]


def hand_over(outcome: Any, *, quiet: bool, as_json: bool) -> None:
    """The run folder on stdout, the closing sentences on stderr."""
    import json

    from .. import terminal as show

    typer.echo(
        json.dumps({"reason": "end", "run": str(outcome.path), "statuses": dict(outcome.statuses)})
        if as_json
        else outcome.path
    )
    if not quiet and not as_json:
        from ...reports.pages.report import open_report
        from ...reports.pages.terminal import terminal_summary
        from .wall_table import found_table

        answers = terminal_summary(open_report([outcome.path]))
        show.closing(outcome.statuses, answers, found_table(outcome.path), outcome.path)


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
            typer.echo(
                f"{name}: ok, {scenario.count('cpu')} cases on a CPU, {scenario.count('cuda')} on"
                " a GPU"
            )
    if problems:
        raise BadInput(*problems)


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    import json

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
    """Run the command line; refusals are shown in their own words, with their exit codes."""
    try:
        app()
    except Refusal as refusal:
        sys.stderr.write(f"{refusal}\n")
        if isinstance(refusal, StoreError):
            import json

            for row in refusal.unsaved:
                sys.stderr.write(json.dumps(row) + "\n")
        sys.exit(refusal.exit_code)
    except ValueError as error:
        from ...impls import BadBackend
        from ...reports.data.read import BadRun

        if not isinstance(error, BadRun | BadBackend):
            raise
        sys.stderr.write(
            f"{error}\n"
        )  # a file of the user's, or of a run that something else has changed
        sys.exit(BadInput.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has gone; say nothing more, also not at exit.
        sys.stderr.close()
        sys.exit(1)
