"""`attnbench doctor`, also with --calibrate, and `attnbench selfcheck`, also with --court: what
this machine can measure, and how far to believe it.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from .options import DEFAULT_ROOT, Device, PickedDevice, Quiet, Root, Seed, Wait, option


def doctor(
    calibrate: Annotated[
        bool,
        option(
            "--calibrate",
            "Check counters against known work, measure this device's peaks, and keep both in"
            " --out.",
        ),
    ] = False,
    device: PickedDevice = Device.AUTO,
    out: Root = DEFAULT_ROOT,
    wait: Wait = False,
    as_json: Annotated[bool, option("--json", "As JSON.")] = False,
) -> None:
    """Say what this machine can measure, and what stands in the way. Exit code 4 where a GPU is
    there but no run on it could be trusted.

    With --calibrate exit code 1 where a check is off.
    """
    import json

    from ..terminal.progress import echo

    if calibrate:
        raise typer.Exit(_calibrate(device.value, out, wait=wait, as_json=as_json))
    from ..terminal.live_bar import busy

    with busy("looking at this machine", quiet=as_json):
        from ..doctor import examine
        from .doctor_table import tables

        findings = examine(out)
    if as_json:
        typer.echo(json.dumps(findings.as_dict(), indent=2))
    else:
        for number, drawn in enumerate(tables(findings)):
            typer.echo("" if number else None, nl=bool(number))
            echo(drawn)
    raise typer.Exit(findings.exit_code)


def _calibrate(device: str, out: Path, *, wait: bool, as_json: bool) -> int:
    import json

    from ..terminal.live_bar import Steps
    from ..terminal.progress import echo, say

    with Steps(quiet=as_json) as steps:
        steps.step("starting")
        from ..doctor.calibrate import calibrate
        from .calibration_table import sentences, tables

        calibration = calibrate(device, out, wait=wait, step=steps.step)
    if as_json:
        typer.echo(json.dumps(calibration.as_line(), indent=2))
        return calibration.exit_code
    for drawn in tables(calibration):
        echo(drawn)
        typer.echo("")
    for sentence in sentences(calibration, out):
        say(sentence)
    return calibration.exit_code


def selfcheck(
    device: PickedDevice = Device.AUTO,
    out: Root = DEFAULT_ROOT,
    wait: Wait = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Annotated[bool, option("--json", "The result as JSON on stdout.")] = False,
    court: Annotated[
        bool, option("--court", "Measure backends that cheat, beside honest ones: who is caught?")
    ] = False,
) -> None:
    """Measure backends against themselves and print this machine's noise floor. Exit code 1 where
    equals are told apart.

    With --court exit code 1 where a cheat escapes or an honest backend is convicted.
    """
    import json
    from dataclasses import asdict

    from ..run.start import RunOptions

    if court:
        raise typer.Exit(_court(device.value, out, seed, wait=wait, quiet=quiet, as_json=as_json))
    from ..selfcheck.noise import selfcheck as check
    from ..terminal.progress import echo, progress, say
    from .selfcheck_table import pairs_table, sentences

    listener = progress(quiet=quiet or as_json)
    listener.start("starting a worker")
    try:
        floor = check(
            device.value,
            out,
            seed,
            RunOptions(command=["attnbench", *sys.argv[1:]], listener=listener, wait=wait),
        )
    finally:
        listener.end()
    if as_json:
        typer.echo(json.dumps(asdict(floor) | {"false_alarms": floor.false_alarms}))
    else:
        echo(pairs_table(floor))
        for sentence in sentences(floor, out, floor.environment):
            say(sentence)
    raise typer.Exit(floor.exit_code)


def _court(device: str, out: Path, seed: int, *, wait: bool, quiet: bool, as_json: bool) -> int:
    import json

    from ..run.start import RunOptions
    from ..selfcheck.court import court
    from ..terminal.progress import QuietProgress, echo, say
    from .court_table import CourtProgress, sentences, verdicts_table

    listener = QuietProgress() if quiet or as_json else CourtProgress()
    command = ["attnbench", *sys.argv[1:]]
    listener.start("starting a worker")
    try:
        result = court(device, out, seed, RunOptions(command=command, listener=listener, wait=wait))
    finally:
        listener.end()
    if as_json:
        typer.echo(json.dumps(result.as_dict()))
        return result.exit_code
    echo(verdicts_table(result))
    typer.echo("")
    for sentence in sentences(result):
        say(sentence)
    return result.exit_code
