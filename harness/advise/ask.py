"""A question about a model, and the rows that answer it, measured where they are missing."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..files.printable import spaced

if TYPE_CHECKING:
    from ...reports.advise.asked import Fields, Inquiry
    from ...reports.advise.stored import StoredRows
    from ..devices.this_device import ThisDevice
    from ..run.engine import RunOptions
    from ..run.run_rows import RunResult


class Ended(Exception):
    """A signal ended a run that measures what is missing; its rows stay."""

    def __init__(self, result: "RunResult") -> None:
        self.result = result


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """How missing rows are measured. `options`: for a run in this process. `limits`: of its
    scenario. `say`: told what is not measured, and why.
    """

    options: "Callable[[], AbstractContextManager[RunOptions]]"
    wait: bool
    limits: Mapping[str, float]
    say: Callable[[str], object] = lambda sentence: None


# ---- rows ----------------------------------------------------------------------------------------


def answered(inquiry: "Inquiry", here: "ThisDevice", out: Path) -> tuple["Inquiry", "StoredRows"]:
    """The rows, and the question about those implementations that they are of: transformers'
    functions where rows answer it of them, attnbench's own where there are rows of those alone;
    whichever are installed here.
    """
    from .shapes import implementations

    usual = stored(inquiry, here, out)
    if not usual.timed(_problems(inquiry)):
        own = any(one.own for one in inquiry.implementations)
        other = replace(inquiry, implementations=implementations(by_transformers=own))
        rows = stored(other, here, out)
        if rows.timed(_problems(other)):
            return other, rows
    return inquiry, usual


def _problems(inquiry: "Inquiry") -> "list[Fields]":
    return [
        one.problem
        for phase in inquiry.phases
        for context in inquiry.contexts
        for one in inquiry.shapes.asked(phase, context)
        if one.problem is not None
    ]


def stored(inquiry: "Inquiry", here: "ThisDevice", out: Path) -> "StoredRows":
    """Of all runs in the results folder, newest first."""
    from ...reports.advise.stored import Device, stored_rows
    from ..rows.run_store import runs

    folders = runs(out)
    device = Device(kind=here.kind, facts=here.facts)
    return stored_rows(reversed(folders), device, _problems(inquiry), inquiry.implementations)


def measured(
    inquiry: "Inquiry", here: "ThisDevice", out: Path, measuring: Measuring
) -> "StoredRows":
    """The rows after measuring what is missing, and again where the choice is close.

    The device is locked from the first look at it to the last row: no other run gets in between.
    Raises Refusal and Ended.
    """
    from ...reports.advise.answer import advise
    from ..process.device_lock import device_lock
    from ..run.start import start_run
    from . import measure as missing

    device, limits = here.facts.get("device_uuid") or here.kind, measuring.limits

    def run(problems: missing.Wanted, plan: str) -> "StoredRows":
        scenario, selection = missing.scenario_of(inquiry, problems, plan, limits)
        with measuring.options() as options:
            how = replace(options, held_device=device)
            result = start_run(scenario, out, 0, selection, how)
        if result.signal is not None:
            raise Ended(result)
        return stored(inquiry, here, out)

    with device_lock(device, wait=measuring.wait, check=lambda: None):
        rows = stored(inquiry, here, out)  # only now: the run that was waited for may have some
        pace = missing.predicted_call_s(inquiry.device, inquiry.dtype)
        for context in missing.too_long(inquiry, pace):
            measuring.say(
                f"A call at {spaced(context)} tokens would take over {missing.LONG_CALL_S:.0f} s"
                " (predicted): shorter contexts are measured for their bytes."
            )
        if problems := missing.wanted(inquiry, rows, pace):
            rows = run(problems, "quick")
        if problems := missing.close(advise(inquiry, rows)):
            takes_s = missing.standard_takes_s(inquiry, problems, limits, pace)
            if takes_s <= missing.LONGEST_STANDARD_S:
                rows = run(problems, "standard")
            else:
                measuring.say(
                    f"The choice is close. A standard run takes about {takes_s / 60:.0f} min;"
                    " its commands are at the end."
                )
    return rows
