"""`attnbench doctor`: what this machine can measure, and with --deep how far to believe it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from ..terminal.idle import await_idle
from .measuring import run_options
from .options import DEFAULT_ROOT, Device, PickedDevice, Root, Wait, WaitIdle, switch

if TYPE_CHECKING:
    from ...reports.elements import Block
    from ..doctor.noise import NoiseFloor


LEARNT_BUSY = (
    "peaks come out too low and noise too large, and later comparisons on this machine allow for it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """As text, and for --json."""

    exit_code: int
    blocks: "Sequence[Block]"
    document: Mapping[str, Any]


def doctor(
    deep: bool = switch(
        "--deep",
        "Also measure what runs are judged by; counters and peaks, and in 6 starts how much equal"
        " runs differ. Once, about 2 minutes.",
    ),
    device: PickedDevice = Device.AUTO,
    out: Root = DEFAULT_ROOT,
    wait: Wait = False,
    wait_idle: WaitIdle = None,
    as_json: bool = switch("--json", "As JSON."),
) -> None:
    """Say what this machine can measure; --deep: how far to believe it. Exit code 4 where a GPU is
    there but no run on it could be trusted.

    With --deep exit code 1 where a check is off.
    """
    from ..terminal.live_bar import busy

    if deep:
        await_idle(wait_idle, quiet=as_json, means=LEARNT_BUSY)
    with busy("looking at this machine", quiet=as_json):
        from ..doctor import examine
        from ..doctor.text import of_machine

        seen = examine(out)
    found = Found(
        exit_code=seen.exit_code, blocks=[*of_machine(seen)], document=dict(seen.as_dict())
    )
    if deep and not found.exit_code:
        found = _and(found, "calibration", _calibrated(device, out, wait=wait, quiet=as_json))
        found = _and(found, "selfcheck", _noise_known(device, out, wait=wait, quiet=as_json))
    _end(found, as_json=as_json)


def _and(found: Found, name: str, more: Found) -> Found:
    from ...reports.elements import Text

    return Found(
        exit_code=max(found.exit_code, more.exit_code),
        blocks=[*found.blocks, Text(text=""), *more.blocks],
        document={**found.document, name: more.document},
    )


def _calibrated(device: Device, out: Path, *, wait: bool, quiet: bool) -> Found:
    """Raises Refusal."""
    from ..terminal.live_bar import Steps

    with Steps(quiet=quiet) as steps:
        steps.step("starting")
        from ..doctor.calibrate import calibrate
        from ..doctor.text import of_calibration

        found = calibrate(device.value, out, wait=wait, step=steps.step)
    blocks = [*of_calibration(found, out)]
    return Found(exit_code=found.exit_code, blocks=blocks, document=found.as_line())


def _noise_known(device: Device, out: Path, *, wait: bool, quiet: bool) -> Found:
    """Raises Refusal."""
    from ..doctor.noise import noise_known

    def check(start: int) -> "NoiseFloor":
        return _noise(device, out, start, wait=wait, quiet=quiet)

    return _of_noise(noise_known(check, out), out)


def _noise(device: Device, out: Path, seed: int, *, wait: bool, quiet: bool) -> "NoiseFloor":
    """Raises Refusal."""
    from ..doctor.noise import selfcheck as check
    from ..terminal.progress import progress, started

    listener = progress(quiet=quiet)
    with started(listener):
        return check(device.value, out, seed, run_options(listener, wait=wait))


def _of_noise(floor: "NoiseFloor", out: Path) -> Found:
    from ..doctor.text import of_noise

    return Found(
        exit_code=floor.exit_code, blocks=[*of_noise(floor, out)], document=floor.as_dict()
    )


def _end(found: Found, *, as_json: bool) -> NoReturn:
    """Print it, and end."""
    from ..verbs.tables import show

    if as_json:
        typer.echo(json.dumps(found.document, indent=2))
    else:
        show(found.blocks)
    raise typer.Exit(found.exit_code)
