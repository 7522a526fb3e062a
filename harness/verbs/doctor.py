"""`attnbench doctor`: what this machine can measure, and with --deep how far to believe it."""

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .fields import DEFAULT_ROOT, AsJson, DeviceKind, Quiet, Runs, Wait, WaitIdle, device_option
from .measuring import How, torch_threads_kept
from .request import Option, Verb

if TYPE_CHECKING:
    from ..doctor import Examined

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


def seen(request: DoctorRequest, how: How) -> "Examined":
    """Raises Refusal."""
    from ..doctor import examine, measure
    from ..terminal.idle import await_idle

    quiet = not how.talks
    if request.deep:
        await_idle(how.wait_idle, quiet=quiet, means=LEARNT_BUSY)
    found = examine(request.runs, quiet=quiet)
    if not request.deep:
        return found
    runs = replace(how, wait_idle=None).started
    return measure(found, request.device, request.runs, runs, wait=how.wait, quiet=quiet)


def tell(request: DoctorRequest) -> int:
    """Say what this machine can measure; --deep: how far to believe it. Exit code 4 where a GPU is
    there but no run on it could be trusted.

    With --deep exit code 1 where a check is off.
    """
    how = How.of(request, json=False, quiet=request.quiet or request.json)
    found = seen(request, how)
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
        return seen(request, How.of(request, "attnbench.doctor()")).as_dict()


VERBS = {
    "doctor": Verb(
        tell=tell,
        answer=doctor,
        python={"quiet": True},
        examples=("attnbench doctor", "attnbench doctor --deep"),
        usual="deep device runs wait json",
    )
}
