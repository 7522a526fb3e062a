"""Several scenarios, each a run of its own: what has finished is left, what was stopped goes on."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import __version__
from ..devices.this_device import ThisDevice, this_device
from ..files.errors import BadInput, EnvironmentUnmet, NothingSelected, Refusal, Stopped
from ..rows.names import scenario_in
from ..rows.run_files import PLANNED, read_meta
from ..rows.run_store import runs
from ..rows.states import RunState, run_state
from ..scenario import Scenario
from ..scenario.selection import Selection, select
from ..studies.attachments import names_in
from .run_rows import LastRows, RunResult
from .start import RunOptions, resume_run, start_run


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEntry:
    """A scenario of several, and which of its cases are measured."""

    scenario: Scenario
    selection: Selection


def earlier_run(entry: SuiteEntry, root: Path, seed: int) -> RunState | None:
    """The newest run under `root` that measures exactly this, with this version of attnbench, on
    this device and with its torch; None if there is none, or if this cannot be measured here.
    """
    with suppress(EnvironmentUnmet, NothingSelected):
        here = this_device(entry.scenario.device)
        for path in reversed(runs(root)):
            if scenario_in(path.name) == entry.scenario.name:
                with suppress(BadInput):  # a broken run is none
                    if _measures(read_meta(path), entry, seed, here):
                        return run_state(path)
    return None


def _measures(meta: Mapping[str, Any], entry: SuiteEntry, seed: int, here: ThisDevice) -> bool:
    shard, part = entry.selection.shard, meta.get("shard") or None
    wanted = {"attnbench": __version__, "device": here.kind, "seed": seed}
    planned = [one["case"] for name in PLANNED for one in meta.get(name, ())]
    return (
        {**meta, **wanted} == meta
        and meta["scenario"] == entry.scenario.resolved(here.kind)
        and "merged" not in meta
        and all(meta["environment"].get(fact) == one for fact, one in here.facts.items())
        and (part and f"{part.get('number')}/{part.get('of')}") == (shard and str(shard))
        and planned == select(entry.scenario, here.kind, entry.selection).ids
    )


def measure_entry(
    entry: SuiteEntry, earlier: RunState | None, root: Path, seed: int, options: RunOptions
) -> RunResult | Refusal:
    """Start its run; of an `earlier` one, measure what it lacks.

    What this machine cannot run, or the filters leave nothing of, is returned, so that the others
    go on. Raises BadInput, StoreError.
    """
    selection = entry.selection
    try:
        if earlier is None:
            return start_run(entry.scenario, root, seed, selection, options)
        if earlier.is_finished:
            return RunResult(path=earlier.path, statuses=earlier.statuses)
        done = LastRows.read(earlier.path).final()
        planned = read_meta(earlier.path).get("studies", ())
        left = names_in(one for one in planned if one["case"] not in done)
        attachments = [one for one in selection.attachments if one.name in left]
        return resume_run(earlier.path, options, attachments=attachments)
    except (Stopped, EnvironmentUnmet, NothingSelected) as refusal:
        return refusal
