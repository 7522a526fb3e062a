"""The command `attnbench`: verbs that parse, call and hand over; what they call prints and computes.

This is the one file that knows harness, impls and reports. Heavy packages are imported inside the verbs, so that help and
listings answer at once.
"""

import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from .errors import BadInput, Refusal, StoreError

app = typer.Typer(
    help="Benchmark multi-head attention: latency, exact memory and GPU utilization, with intervals and an offline report.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
list_app = typer.Typer(help="List backends, scenarios or runs.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(list_app, name="list")

DEFAULT_ROOT = Path("results")
Root = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder that holds the run folders.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="Run folder, or its name under --out; 'latest' is the newest.")]


class Device(StrEnum):
    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class Format(StrEnum):
    CSV = "csv"
    JSON = "json"
    MD = "md"


@app.command()
def run(
    scenarios: Annotated[
        list[str] | None, typer.Argument(metavar="[SCENARIO]...", help="YAML files or names of shipped scenarios.")
    ] = None,
    backends: Annotated[str | None, typer.Option(help="Instead of a scenario: backends, as naive,fused,sdpa.")] = None,
    batch: Annotated[str | None, typer.Option(help="Batch sizes, as 1,8.")] = None,
    seq_len: Annotated[str | None, typer.Option(help="Sequence lengths, as 512,1k,8k (1k = 1024).")] = None,
    kv_seq_len: Annotated[str | None, typer.Option(help="Key/value lengths, where they differ.")] = None,
    d_model: Annotated[str | None, typer.Option(help="Model widths.")] = None,
    heads: Annotated[str | None, typer.Option(help="Numbers of heads.")] = None,
    kv_heads: Annotated[str | None, typer.Option(help="Numbers of key/value heads, where they differ.")] = None,
    dtype: Annotated[str | None, typer.Option(help="fp32, bf16, fp16.")] = None,
    causal: Annotated[bool, typer.Option("--causal", help="Mask the future.")] = False,
    passes: Annotated[str | None, typer.Option(help="forward, backward, forward+backward.")] = None,
    scope: Annotated[str | None, typer.Option(help="core (from q, k, v) or layer (with projections).")] = None,
    baseline: Annotated[str | None, typer.Option(help="Backend that ratios are taken against.")] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="Measure only cases whose id matches; repeatable.")] = None,
    skip: Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="Leave out cases whose id matches; repeatable.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", metavar="A.B=C", help="Change a field of the scenario; repeatable.")] = None,
    device: Annotated[Device | None, typer.Option(help="Where to measure; auto takes a GPU where there is one.")] = None,
    out: Root = DEFAULT_ROOT,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Show every case with its predicted bytes; measure nothing.")] = False,
    resume: Annotated[str | None, typer.Option(metavar="RUN", help="Measure what this run still lacks.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="With --resume: crashed, failed and timed-out cases again.")] = False,
    force: Annotated[bool, typer.Option("--force", help="With --resume: even in another environment.")] = False,
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="Time limit of one step of a case.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for another run on this device to end.")] = False,
    plan: Annotated[str | None, typer.Option(help="quick, standard or rigorous.")] = None,
    seed: Annotated[int, typer.Option(help="Of inputs and of the order of measuring.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no closing sentences.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Progress as JSON lines on stdout.")] = False,
) -> None:
    """Measure scenarios, or a grid given by flags. Prints the run folder; progress goes to stderr."""
    axes = {
        "backends": backends, "batch": batch, "seq_len": seq_len, "kv_seq_len": kv_seq_len, "d_model": d_model, "heads": heads,
        "kv_heads": kv_heads, "dtype": dtype, "causal": causal or None, "passes": passes, "scope": scope, "baseline": baseline,
    }  # fmt: skip
    given = {name: value for name, value in axes.items() if value is not None}
    changes = [
        *(sets or []),
        *([f"device={device}"] if device else []),
        *([f"limits.timeout_s={timeout}"] if timeout is not None else []),
        *([f"plan={plan}"] if plan else []),
    ]
    if resume is not None and (scenarios or given or changes or only or skip or dry_run):
        raise BadInput("--resume: takes the run as it was planned; leave out scenarios, axes, --set, --only, --skip and --dry-run")
    if resume is None and (retry_failed or force):
        raise BadInput("--retry-failed and --force belong to --resume RUN")

    from .run import Choice, Manner, Outcome, resume_run, start_run

    planned = planned_scenarios(scenarios or [], given, changes) if resume is None else []
    choice = Choice(only=tuple(only or ()), skip=tuple(skip or ()))
    if dry_run:
        from .outlook_table import outlook_table

        for scenario in planned:
            echo_table(outlook_table(scenario, choice))
        return

    from . import show
    from .store import find_run

    progress = show.JsonProgress() if as_json else show.QuietProgress() if quiet else show.LiveProgress(show.console())
    manner = Manner(command=["attnbench", *sys.argv[1:]], listener=progress, wait=wait)
    jobs: list[Callable[[], Outcome]] = [partial(start_run, scenario, out, seed, choice, manner) for scenario in planned]
    if resume is not None:
        jobs = [partial(resume_run, find_run(resume, out), manner, retry_failed=retry_failed, force=force)]
    worst = 0
    for job in jobs:
        try:
            outcome = job()
        finally:
            progress.end()
        hand_over(outcome, quiet=quiet, as_json=as_json)
        worst = max(worst, outcome.exit_code)
        if outcome.signal is not None:
            break
    raise typer.Exit(worst)


def planned_scenarios(scenarios: list[str], axes: Mapping[str, str | bool], changes: list[str]) -> list[Any]:
    """All scenarios are read before the first one is measured, so that a mistake in the last one costs nothing."""
    from .scenario import from_axes, load

    if scenarios and axes:
        flag = f"--{next(iter(axes)).replace('_', '-')}"
        raise BadInput(f"{flag}: axes by flags and scenarios exclude each other; change a scenario with --set grid.seq_len=[512,1k]")
    if not scenarios and not axes:
        example = "--backends naive,fused --seq-len 1k --d-model 512 --heads 8"
        raise BadInput(f"nothing to run; name a scenario (see attnbench list scenarios), or give axes such as {example}")
    return [from_axes(axes, changes)] if axes else [load(name, changes) for name in scenarios]


def hand_over(outcome: Any, *, quiet: bool, as_json: bool) -> None:
    """The run folder on stdout, the closing sentences on stderr."""
    import json

    from . import show

    typer.echo(json.dumps({"reason": "end", "run": str(outcome.path), "statuses": dict(outcome.statuses)}) if as_json else outcome.path)
    if not quiet and not as_json:
        from ..reports.closing import closing

        show.closing(outcome.statuses, closing(outcome.path), outcome.path)


@list_app.command("backends")
def list_backends(device: Annotated[Device, typer.Option(help="Where they would run.")] = Device.AUTO) -> None:
    """Backends, and why one cannot run here."""
    from .listing import backends_table

    echo_table(backends_table(device.value))


@list_app.command("scenarios")
def list_scenarios() -> None:
    """Shipped scenarios and the question that each answers."""
    from .listing import scenarios_table

    echo_table(scenarios_table())


@list_app.command("runs")
def list_runs(out: Root = DEFAULT_ROOT) -> None:
    """Runs in a folder: when, what, how they ended."""
    from .listing import runs_table

    echo_table(runs_table(out))


def echo_table(table: Any) -> None:
    """A table on stdout: it is what was asked for."""
    from rich.console import Console

    wide = None if sys.stdout.isatty() else 10_000  # in a pipe or a file nothing is folded
    Console(highlight=False, width=wide).print(table)


@app.command()
def validate(
    scenarios: Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="YAML files or names of shipped scenarios.")],
) -> None:
    """Check scenario files; every mistake is named with its place."""
    from .scenario import load

    problems: list[str] = []
    for name in scenarios:
        try:
            scenario = load(name)
        except BadInput as error:
            problems += error.problems
        else:
            typer.echo(f"{name}: ok, {scenario.count('cpu')} cases on a CPU, {scenario.count('cuda')} on a GPU")
    if problems:
        raise BadInput(*problems)


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    import json

    from .scenario import schema as scenario_schema

    typer.echo(json.dumps(scenario_schema(), indent=2))


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Say what this machine can measure, and what stands in the way. Exit code 4 where a GPU is there but not usable."""
    import json

    from .doctor import examine

    findings = examine()
    if as_json:
        typer.echo(json.dumps(findings.as_dict(), indent=2))
    else:
        echo_table(findings.table())
    raise typer.Exit(findings.exit_code)


@app.command()
def report(
    run: RunName,
    out: Root = DEFAULT_ROOT,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: report.html in the run folder.")] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Write the HTML report, one self-contained file, and print its path."""
    from ..reports.html import write
    from .store import find_run

    path = write(find_run(run, out), output)
    typer.echo(path)
    if open_it:
        typer.launch(path.as_uri())


@app.command()
def export(
    run: RunName,
    format_: Annotated[Format, typer.Option("--format", help="csv, json or md.")] = Format.CSV,
    out: Root = DEFAULT_ROOT,
) -> None:
    """Print the run as a tidy table, one row per case."""
    from ..reports.export import export as export_run
    from .store import find_run

    typer.echo(export_run(find_run(run, out), format_.value), nl=False)


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
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has gone; say nothing more, also not at exit.
        sys.stderr.close()
        sys.exit(1)
