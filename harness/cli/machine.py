"""`attnbench doctor`: what this machine can measure, and with --deep how far to believe it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from ..terminal.idle import await_idle
from .measuring import run_options
from .options import DEFAULT_ROOT, Device, PickedDevice, Root, Wait, WaitIdle, switch

if TYPE_CHECKING:
    from ..run.start import RunOptions

LEARNT_BUSY = (
    "peaks come out too low and noise too large, and later comparisons on this machine allow for it"
)


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
    from ..doctor import examine, measure

    @contextmanager
    def options() -> "Iterator[RunOptions]":
        from ..terminal.progress import progress, started

        listener = progress(quiet=as_json)
        with started(listener):
            yield run_options(listener, wait=wait)

    if deep:
        await_idle(wait_idle, quiet=as_json, means=LEARNT_BUSY)
    found = examine(out, quiet=as_json)
    if deep:
        found = measure(found, device.value, out, options, wait=wait, quiet=as_json)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
    else:
        from ..doctor.text import blocks
        from .tables import show

        show(blocks(found, out))
    raise typer.Exit(found.exit_code)
