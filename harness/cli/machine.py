"""`attnbench doctor`, also with --calibrate, and `attnbench selfcheck`, also with --court: what
this machine can measure, and how far to believe it.
"""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from .idle import wait_until_idle
from .measuring import run_options
from .options import DEFAULT_ROOT, Device, PickedDevice, Quiet, Root, Seed, Wait, WaitIdle, switch

if TYPE_CHECKING:
    from ...reports.elements import Block


def doctor(
    calibrate: bool = switch(
        "--calibrate",
        "Check counters against known work, measure this device's peaks, and keep both in --out.",
    ),
    device: PickedDevice = Device.AUTO,
    out: Root = DEFAULT_ROOT,
    wait: Wait = False,
    as_json: bool = switch("--json", "As JSON."),
) -> None:
    """Say what this machine can measure, and what stands in the way. Exit code 4 where a GPU is
    there but no run on it could be trusted.

    With --calibrate exit code 1 where a check is off.
    """
    from ..terminal.live_bar import Steps, busy

    if calibrate:
        with Steps(quiet=as_json) as steps:
            steps.step("starting")
            from ..doctor.calibrate import calibrate as measured
            from .machine_text import of_calibration

            found = measured(device.value, out, wait=wait, step=steps.step)
        _end(
            found.exit_code,
            of_calibration(found, out),
            found.as_line() if as_json else None,
            indent=2,
        )
    with busy("looking at this machine", quiet=as_json):
        from ..doctor import examine
        from .machine_text import of_machine

        findings = examine(out)
    document = findings.as_dict() if as_json else None
    _end(findings.exit_code, of_machine(findings), document, indent=2)


def selfcheck(
    device: PickedDevice = Device.AUTO,
    out: Root = DEFAULT_ROOT,
    wait: Wait = False,
    wait_idle: WaitIdle = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: bool = switch("--json", "The result as JSON on stdout."),
    court: bool = switch(
        "--court", "Measure backends that cheat, beside honest ones: who is caught?"
    ),
) -> None:
    """Measure backends against themselves and print this machine's noise floor. Exit code 1 where
    equals are told apart.

    With --court exit code 1 where a cheat escapes or an honest backend is convicted.
    """
    from ..terminal.progress import progress, started

    quiet = quiet or as_json
    wait_until_idle(wait_idle, quiet=quiet)
    if court:
        from ..selfcheck.court import court as tried
        from .machine_text import CourtProgress, of_court

        listener = progress(quiet=True) if quiet else CourtProgress()
        with started(listener):
            result = tried(device.value, out, seed, run_options(listener, wait=wait))
        _end(result.exit_code, of_court(result), result.as_dict() if as_json else None)
    from ..selfcheck.noise import selfcheck as check
    from .machine_text import of_noise

    listener = progress(quiet=quiet)
    with started(listener):
        floor = check(device.value, out, seed, run_options(listener, wait=wait))
    _end(floor.exit_code, of_noise(floor, out), floor.as_dict() if as_json else None)


def _end(
    code: int, blocks: "Iterable[Block]", document: Mapping[str, Any] | None, **how: Any
) -> NoReturn:
    """Print what was found: the document as JSON, if there is one, else the blocks."""
    from .tables import show

    if document is not None:
        typer.echo(json.dumps(document, **how))
    else:
        show(blocks)
    raise typer.Exit(code)
