"""`attnbench doctor`: what this machine can measure, and with --deep how far to believe it."""

from dataclasses import dataclass
from typing import Annotated

import typer

from .fields import DEFAULT_ROOT, AsJson, DeviceKind, Quiet, Runs, Wait, WaitIdle, device_option
from .request import Option, Verb


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


def tell(request: DoctorRequest) -> int:
    """Say what this machine can measure; --deep: how far to believe it. Exit code 4 where a GPU is
    there but no run on it could be trusted.

    With --deep exit code 1 where a check is off.
    """
    typer.echo(request)
    return 0


VERBS = {"doctor": Verb(tell=tell, examples=("attnbench doctor", "attnbench doctor --deep"))}
