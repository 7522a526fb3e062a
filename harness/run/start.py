"""How a run comes about: a new one, or one taken up again; what it measures, on which device, under
which terms.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..calibration.calibrate import newest_calibration
from ..cases import Case, Group, case_of, study_of, wall_of
from ..errors import BadInput
from ..process.signals import Signals
from ..record import RETRIED, Status
from ..scenario import Plan, Scenario
from ..selection import Choice, select
from ..store import Store, read_meta, read_rows
from .environments import (
    changes,
    device_for,
    first_of,
    first_workers,
    interpreters_of,
    refuse_changes,
)
from .permission import refuse_imports
from .session import Course, Job, Last, Listener, Outcome, under_way
from .worker_pool import Terms

# of the memory that is free at the start; the rest is for our reference and for everybody else
SAFE_SHARE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a run is started, whatever it measures. `wait`: for another run on the same device to
    end. `gpu_uuid`: the GPU whose counters are read, where it is not the one that torch uses.
    `is_guest`: in a process that goes on after the run, see Signals. `allow_import`: of modules
    that backends are named by."""

    command: Sequence[str]
    listener: Listener
    wait: bool = False
    gpu_uuid: str | None = None
    is_guest: bool = False
    allow_import: bool = False


def start_run(scenario: Scenario, root: Path, seed: int, choice: Choice, manner: Manner) -> Outcome:
    """Measure a scenario into a new run folder. Raises Refusal."""
    with open_run(scenario, root, seed, choice, manner) as course:
        course.complete()
    return course.outcome


@contextmanager
def open_run(
    scenario: Scenario, root: Path, seed: int, choice: Choice, manner: Manner
) -> Iterator[Course]:
    """A new run folder and the device, for a run whose steps the caller takes. Raises Refusal."""
    refuse_imports(scenario.backends, allowed=manner.allow_import)
    with (
        Signals(is_guest=manner.is_guest) as signals,
        first_workers(scenario.device, signals, choice.interpreters) as workers,
        device_for(worker := first_of(workers), signals, wait=manner.wait),
    ):
        device = worker.ready["device"]
        groups, walls, studies, duplicates = select(scenario, device, choice)
        memory_gib = scenario.limits.memory_gib
        calibration = calibration_of(root, worker.ready["environment"])
        terms = Terms(
            device=device,
            plan=scenario.plan,
            measure=scenario.measure,
            timeout_s=scenario.limits.timeout_s,
            budget_bytes=(
                int(memory_gib * 2**30) if memory_gib else int(SAFE_SHARE * worker.free_bytes())
            ),
            seed=seed,
            baseline=scenario.baseline,
            contrast=scenario.contrast,
            watch=scenario.watched(),
            gpu_uuid=manner.gpu_uuid,
            peaks=calibration["peaks"] if calibration else None,
            pythons={one.name: one.path for one in choice.interpreters},
        )
        meta = {
            "attnbench": worker.ready["environment"]["attnbench"],
            "started_utc": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": list(manner.command),
            "scenario": scenario.resolved(device),
            "device": device,
            "memory_bytes": terms.budget_bytes,
            "seed": seed,
            "environment": worker.ready["environment"],
            "environments": [
                one.run_json(workers[one.name].ready["environment"]) for one in choice.interpreters
            ],
            "calibration": calibration,
            "cases": [
                {"group": group.number, **case.fields()} for group in groups for case in group.cases
            ],
            "walls": [wall.fields() for wall in walls],
            "studies": [study.fields() for study in studies],
        }
        store = Store.create(root, scenario.name, meta)
        remarks = [f"{duplicates} duplicate problems were left out"] if duplicates else []
        job = Job(
            store=store, groups=groups, walls=walls, studies=studies, terms=terms, remarks=remarks
        )
        with under_way(job, workers, signals, manner.listener) as course:
            yield course


def resume_run(
    path: Path, manner: Manner, *, retry_failed: bool = False, force: bool = False
) -> Outcome:
    """Measure what a run still lacks. Raises Refusal, EnvironmentUnmet among them where the machine
    or its software changed.
    """
    meta = read_meta(path)
    if meta.get("kernels"):
        raise BadInput(
            f"--resume: {path.name} is an audit of kernels; run `attnbench kernels audit` again,"
            " what was compiled is kept"
        )
    refuse_imports(
        [fields["backend"] for fields in (*meta["cases"], *meta.get("walls", ()))],
        allowed=manner.allow_import,
    )
    scenario = meta["scenario"]
    interpreters = interpreters_of(meta)
    with (
        Signals(is_guest=manner.is_guest) as signals,
        first_workers(meta["device"], signals, interpreters) as workers,
        device_for(first_of(workers), signals, wait=manner.wait),
    ):
        changed = changes(meta, workers)
        if not force:
            refuse_changes(changed)
        terms = Terms(
            device=meta["device"],
            plan=Plan.model_validate(scenario["plan"]),
            measure=tuple(scenario["measure"]),
            timeout_s=scenario["limits"]["timeout_s"],
            budget_bytes=meta["memory_bytes"],
            seed=meta["seed"],
            baseline=scenario["baseline"],
            contrast=tuple(scenario["contrast"]),
            watch=scenario.get("watch", {}),
            gpu_uuid=manner.gpu_uuid,
            peaks=(meta.get("calibration") or {}).get("peaks"),
            pythons={one.name: one.path for one in interpreters},
        )
        store = Store.reopen(path)
        last = {row["case"]: Last(row["status"], row["attempt"]) for row in read_rows(path)}
        again = {Status.INTERRUPTED, *(RETRIED if retry_failed else ())}
        settled = {case for case, row in last.items() if row.status not in again}
        numbered: dict[int, list[Case]] = {}
        for fields in meta["cases"]:
            if fields["case"] not in settled:
                numbered.setdefault(fields["group"], []).append(case_of(fields))
        groups = tuple(
            Group(number=number, cases=tuple(cases)) for number, cases in numbered.items()
        )
        walls = tuple(
            wall_of(fields) for fields in meta.get("walls", ()) if fields["case"] not in settled
        )
        studies = tuple(
            study_of(fields) for fields in meta.get("studies", ()) if fields["case"] not in settled
        )
        different = ", ".join(one.of for one in changed)
        remarks = (
            [f"measured in a different environment ({different} changed), as --force asked"]
            if changed
            else []
        )
        job = Job(
            store=store,
            groups=groups,
            walls=walls,
            studies=studies,
            terms=terms,
            remarks=remarks,
            last=last,
        )
        with under_way(job, workers, signals, manner.listener) as course:
            course.complete()
        return course.outcome


def calibration_of(root: Path, environment: Mapping[str, Any]) -> dict[str, Any] | None:
    """What `attnbench doctor --calibrate` found last on this device."""
    name = environment["device_name"] if environment["device"] == "cuda" else environment["cpu"]
    return newest_calibration(root, environment["device_uuid"], name)
