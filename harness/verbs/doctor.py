"""`attnbench doctor`: what this machine can measure, and with --deep how far to believe it."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import fields
from .measuring import How, torch_threads_kept
from .request import Option, Verb

if TYPE_CHECKING:
    from ..doctor import Examined

LEARNT_BUSY = (
    "peaks will be too low and noise too large, also for later comparisons on this machine"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRequest:
    deep: Annotated[bool, Option()] = False
    """Also measure peaks, check counters and learn run-to-run noise; once, about 2 minutes in 6
    starts. Comparisons use it.
    """
    device: Annotated[
        fields.DeviceKind,
        fields.device_option("Device to examine with --deep; auto takes a GPU if there is one."),
    ] = "auto"
    runs: fields.Runs = fields.DEFAULT_ROOT
    wait: fields.Wait = False
    wait_idle: fields.WaitIdle = None
    quiet: fields.Quiet = False
    json: fields.AsJson = False


def seen(request: DoctorRequest, how: How) -> "Examined":
    """Raises Refusal."""
    from ..doctor import examine, measure
    from ..terminal.idle import await_idle

    quiet = not how.talks
    if request.deep:
        await_idle(request.wait_idle, quiet=quiet, means=LEARNT_BUSY)
    found = examine(request.runs, quiet=quiet)
    if not request.deep:
        return found
    root, wait = request.runs, request.wait
    return measure(found, request.device, root, how.started, wait=wait, quiet=quiet)


def tell(request: DoctorRequest) -> int:
    """Check what this machine can measure; --deep: how precisely.

    Exit code 4: no run could be trusted on this machine's GPU; 1: a check of --deep failed.
    """
    found = seen(request, How(request=request))
    if request.json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
    else:
        from ..doctor.text import blocks
        from .tables import show

        show(blocks(found, request.runs))
    return found.exit_code


def doctor(request: DoctorRequest) -> dict[str, Any]:
    """What this machine can measure, and what stands in the way. Raises Refusal."""
    with torch_threads_kept():
        return seen(request, How.python(request, "attnbench.doctor()")).as_dict()


VERBS = {
    "doctor": Verb(
        tell=tell,
        answer=doctor,
        examples=("attnbench doctor", "attnbench doctor --deep"),
        usual="deep device runs wait json",
    )
}
