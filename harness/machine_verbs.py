"""`attnbench doctor` and `attnbench selfcheck`: what this machine can measure, and how far its numbers can be believed."""

import sys
from typing import Annotated

import typer

from .flags import DEFAULT_ROOT, Device, Quiet, Root, Seed, Wait


def doctor(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Say what this machine can measure, and what stands in the way. Exit code 4 where a GPU is there but not usable."""
    import json

    from .doctor import examine
    from .show import echo_table

    findings = examine()
    if as_json:
        typer.echo(json.dumps(findings.as_dict(), indent=2))
    else:
        echo_table(findings.table())
    raise typer.Exit(findings.exit_code)


def selfcheck(
    device: Annotated[Device, typer.Option(help="Where to measure; auto takes a GPU where there is one.")] = Device.AUTO,
    out: Root = DEFAULT_ROOT,
    wait: Wait = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="The verdict as JSON on stdout.")] = False,
) -> None:
    """Measure backends against themselves and print this machine's noise floor. Exit code 1 where equals are told apart."""
    import json
    from dataclasses import asdict

    from . import show
    from .run import Manner
    from .selfcheck import selfcheck as check
    from .selfcheck_table import sentences, table

    progress = show.QuietProgress() if quiet or as_json else show.LiveProgress(show.console())
    try:
        verdict = check(device.value, out, seed, Manner(command=["attnbench", *sys.argv[1:]], listener=progress, wait=wait))
    finally:
        progress.end()
    if as_json:
        typer.echo(json.dumps(asdict(verdict) | {"false_alarms": verdict.false_alarms}))
    else:
        show.echo_table(table(verdict))
        for sentence in sentences(verdict, out):
            typer.echo(sentence)
    raise typer.Exit(verdict.exit_code)
