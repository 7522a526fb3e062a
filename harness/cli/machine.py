"""`attnbench doctor`, also with --calibrate, and `attnbench selfcheck`, also with --court: what
this machine can measure, and how far to believe it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import DEFAULT_ROOT, Device, PickedDevice, Quiet, Root, Seed, Wait, option

if TYPE_CHECKING:
    from ...reports.elements import Table
    from ..doctor import Findings


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

    from .tables import show

    if calibrate:
        raise typer.Exit(_calibrate(device.value, out, wait=wait, as_json=as_json))
    from ..terminal.live_bar import busy

    with busy("looking at this machine", quiet=as_json):
        from ..doctor import examine

        findings = examine(out)
    if as_json:
        typer.echo(json.dumps(findings.as_dict(), indent=2))
    else:
        show(_tables(findings))
    raise typer.Exit(findings.exit_code)


def _tables(found: "Findings") -> "Iterator[Table]":
    """One for the machine, and one for each GPU."""
    from ...reports.elements import Table

    titles = {"": ""} | {finding.gpu: finding.gpu for finding in found.findings}
    used = {gpu["short_uuid"] for gpu in found.gpus if gpu["torch_uses"]}
    for gpu, title in titles.items():
        rows: list[tuple[str, ...]] = []
        for one in (one for one in found.findings if one.gpu == gpu):
            rows.append((one.about, one.grade, one.found))
            if one.advice:  # below the finding: three columns fit 80 characters, four do not
                rows.append(("", "", f"-> {one.advice}"))
        which = ", the one that torch uses" if gpu in used else ""
        yield Table(title=title + which, columns=("about", "", "found"), rows=tuple(rows))


def _calibrate(device: str, out: Path, *, wait: bool, as_json: bool) -> int:
    import json

    from ..terminal.live_bar import Steps
    from .tables import show

    with Steps(quiet=as_json) as steps:
        steps.step("starting")
        from ..doctor.calibrate import calibrate
        from .calibration_text import blocks

        calibration = calibrate(device, out, wait=wait, step=steps.step)
    if as_json:
        typer.echo(json.dumps(calibration.as_line(), indent=2))
        return calibration.exit_code
    show(blocks(calibration, out))
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
    from ..terminal.progress import progress
    from .selfcheck_text import blocks
    from .tables import show

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
        show(blocks(floor, out))
    raise typer.Exit(floor.exit_code)


def _court(device: str, out: Path, seed: int, *, wait: bool, quiet: bool, as_json: bool) -> int:
    import json

    from ..run.start import RunOptions
    from ..selfcheck.court import court
    from ..terminal.progress import QuietProgress
    from .court_text import CourtProgress, blocks
    from .tables import show

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
    show(blocks(result))
    return result.exit_code
