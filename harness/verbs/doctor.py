"""`attnbench doctor`: what this machine can measure, and with --deep how far to believe it."""

import json
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .fields import DEFAULT_ROOT, AsJson, DeviceKind, Quiet, Runs, Wait, WaitIdle, device_option
from .measuring import How, torch_threads_kept
from .request import Option, Verb

if TYPE_CHECKING:
    from ...reports.elements import Block
    from ..doctor.noise import NoiseFloor

LEARNT_BUSY = (
    "peaks come out too low and noise too large, and later comparisons on this machine allow for it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRequest:
    deep: Annotated[bool, Option("")] = False
    """Also measure what runs are judged by; counters and peaks, and in 6 starts how much equal runs
    differ. Once, about 2 minutes.
    """
    device: Annotated[DeviceKind, device_option("Where; auto takes a GPU if there is one.")] = (
        "auto"
    )
    runs: Runs = DEFAULT_ROOT
    wait: Wait = False
    wait_idle: WaitIdle = None
    quiet: Quiet = False
    json: AsJson = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """`blocks`: for a terminal; `document`: for programs."""

    exit_code: int
    blocks: "list[Block]"
    document: dict[str, Any]


def found(request: DoctorRequest, how: How) -> Found:
    """Raises Refusal."""
    from ..terminal.idle import await_idle
    from ..terminal.live_bar import Steps, busy

    root, device, quiet = request.runs, request.device, not how.talks
    if request.deep:
        await_idle(how.wait_idle, quiet=quiet, means=LEARNT_BUSY)
    with busy("looking at this machine", quiet=quiet):
        from ..doctor import examine
        from ..doctor.text import of_calibration, of_machine, of_noise

        seen = examine(root)
    whole = Found(
        exit_code=seen.exit_code, blocks=[*of_machine(seen)], document=dict(seen.as_dict())
    )
    if not request.deep or seen.exit_code:
        return whole
    with Steps(quiet=quiet) as steps:
        steps.step("starting")
        from ..doctor.calibrate import calibrate
        from ..doctor.noise import noise_known, selfcheck
        from ..terminal.progress import started

        peaks = calibrate(device, root, wait=how.wait, step=steps.step)

    def check(start: int) -> "NoiseFloor":
        with replace(how, wait_idle=None).options() as options, started(options.listener):
            return selfcheck(device, root, start, options)

    noise = noise_known(check, root)
    blocks = chain(_after_space(of_calibration(peaks, root)), _after_space(of_noise(noise, root)))
    return Found(
        exit_code=max(peaks.exit_code, noise.exit_code),
        blocks=[*whole.blocks, *blocks],
        document=whole.document | {"calibration": peaks.as_line(), "selfcheck": noise.as_dict()},
    )


def _after_space(blocks: Any) -> "list[Block]":
    from ...reports.elements import Text

    return [Text(text=""), *blocks]


def tell(request: DoctorRequest) -> int:
    """Say what this machine can measure; --deep: how far to believe it. Exit code 4 where a GPU is
    there but no run on it could be trusted.

    With --deep exit code 1 where a check is off.
    """
    from .tables import show

    how = How.of(request, json=False, quiet=request.quiet or request.json)
    whole = found(request, how)
    if request.json:
        typer.echo(json.dumps(whole.document, indent=2))
    else:
        show(whole.blocks)
    return whole.exit_code


def doctor(request: DoctorRequest) -> dict[str, Any]:
    """What this machine can measure, and what stands in the way. Raises Refusal."""
    with torch_threads_kept():
        return found(request, How.of(request, "attnbench.doctor()")).document


VERBS = {
    "doctor": Verb(
        tell=tell,
        answer=doctor,
        python={"quiet": True},
        examples=("attnbench doctor", "attnbench doctor --deep"),
        usual="deep device runs wait json",
    )
}
