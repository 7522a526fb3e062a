"""A run from its first case to its last: what to measure, in which order, one row per case, and an orderly end."""

import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from .calibrate import newest_calibration
from .case import Case, Group, case_of
from .choice import Choice, select
from .costs import known
from .crew import Crew, Terms
from .device_lock import alone_on
from .errors import EnvironmentUnmet, Stopped
from .group import Means
from .lap import Lap, laps
from .permission import refuse_imports
from .record import FAILURES, RETRIED, Record, Status
from .scenario import Plan, Scenario
from .signals import Signals
from .spawn import Fault, Interrupted, Worker
from .store import LOGS, Store, read_meta, read_rows
from .study import Inquiry, Planned, StudyRecord, study_of
from .timeline import Timeline
from .wall.hunt import Hunt
from .wall.plan import Wall, wall_of
from .wall.record import WallRecord

FINGERPRINT = ("device_name", "device_uuid", "driver", "cuda", "cudnn", "torch", "threads", "cpu", "cores", "allocator", "attnbench", "git")
"""Facts of the environment that must be equal before rows of two starts may stand in one run."""

AnyRecord = Record | WallRecord | StudyRecord

SAFE_SHARE = 0.7  # of the memory that is free at the start; the rest is for our reference and for everybody else


class Last(NamedTuple):
    """What counts of the rows that a run has already."""

    status: str
    attempt: int


class Listener(Protocol):
    """Is told how a run goes; prints, or keeps quiet."""

    def begin(self, path: Path, planned: Mapping[str, int], done: int, remarks: Sequence[str]) -> None: ...

    def running(self, what: str, phase: str) -> None: ...

    def finished(self, record: AnyRecord) -> None: ...

    def remark(self, text: str) -> None: ...


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How a run ended. `signal` is the number of the signal that ended it early."""

    path: Path
    statuses: Counter[str] = field(default_factory=Counter)
    signal: int | None = None

    @property
    def exit_code(self) -> int:
        if self.signal is not None:
            return 128 + self.signal
        return 1 if any(self.statuses[status] for status in FAILURES) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is left to measure, and where it goes. `last`: the rows that the run has already, by case, wall or study."""

    store: Store
    groups: tuple[Group, ...]
    walls: tuple[Wall, ...]
    studies: tuple[Planned, ...]
    terms: Terms
    remarks: Sequence[str]
    last: Mapping[str, Last] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a run is started, whatever it measures. `wait`: for another run on the same device to end. `gpu_uuid`: the GPU whose
    counters are read, where it is not the one that torch uses. `allow_import`: of modules that backends are named by."""

    command: Sequence[str]
    listener: Listener
    wait: bool = False
    gpu_uuid: str | None = None
    allow_import: bool = False


def start_run(scenario: Scenario, root: Path, seed: int, choice: Choice, manner: Manner) -> Outcome:
    """Measure a scenario into a new run folder. Raises Refusal."""
    refuse_imports(scenario.backends, allowed=manner.allow_import)
    with Signals() as signals, first_worker(scenario.device, signals) as worker, device_for(worker, manner, signals):
        device = worker.ready["device"]
        groups, walls, studies, duplicates = select(scenario, device, choice)
        memory_gib = scenario.limits.memory_gib
        calibration = calibration_of(root, worker.ready["environment"])
        terms = Terms(
            device=device,
            plan=scenario.plan,
            measure=scenario.measure,
            timeout_s=scenario.limits.timeout_s,
            budget_bytes=int(memory_gib * 2**30) if memory_gib else int(SAFE_SHARE * worker.free_bytes()),
            seed=seed,
            baseline=scenario.baseline,
            contrast=scenario.contrast,
            watch=scenario.watched(),
            gpu_uuid=manner.gpu_uuid,
            peaks=calibration["peaks"] if calibration else None,
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
            "calibration": calibration,
            "cases": [{"group": group.number, **case.fields()} for group in groups for case in group.cases],
            "walls": [wall.fields() for wall in walls],
            "studies": [study.fields() for study in studies],
        }
        store = Store.create(root, scenario.name, meta)
        remarks = [f"{duplicates} duplicate problems were left out"] if duplicates else []
        job = Job(store=store, groups=groups, walls=walls, studies=studies, terms=terms, remarks=remarks)
        return _measure(job, worker, signals, manner.listener)


def resume_run(path: Path, manner: Manner, *, retry_failed: bool = False, force: bool = False) -> Outcome:
    """Measure what a run still lacks. Raises Refusal, EnvironmentUnmet among them where the machine or its software changed."""
    meta = read_meta(path)
    refuse_imports([fields["backend"] for fields in (*meta["cases"], *meta.get("walls", ()))], allowed=manner.allow_import)
    scenario = meta["scenario"]
    with Signals() as signals, first_worker(meta["device"], signals) as worker, device_for(worker, manner, signals):
        changed = [key for key in FINGERPRINT if meta["environment"].get(key) != worker.ready["environment"].get(key)]
        if changed and not force:
            raise EnvironmentUnmet(difference(changed[0], meta["environment"], worker.ready["environment"]))
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
        )
        store = Store.reopen(path)
        last = {row["case"]: Last(row["status"], row["attempt"]) for row in read_rows(path)}
        again = {Status.INTERRUPTED, *(RETRIED if retry_failed else ())}
        settled = {case for case, row in last.items() if row.status not in again}
        numbered: dict[int, list[Case]] = {}
        for fields in meta["cases"]:
            if fields["case"] not in settled:
                numbered.setdefault(fields["group"], []).append(case_of(fields))
        groups = tuple(Group(number=number, cases=tuple(cases)) for number, cases in numbered.items())
        walls = tuple(wall_of(fields) for fields in meta.get("walls", ()) if fields["case"] not in settled)
        studies = tuple(study_of(fields) for fields in meta.get("studies", ()) if fields["case"] not in settled)
        remarks = [f"measured in a different environment ({', '.join(changed)} changed), as --force asked"] if changed else []
        job = Job(store=store, groups=groups, walls=walls, studies=studies, terms=terms, remarks=remarks, last=last)
        return _measure(job, worker, signals, manner.listener)


def _measure(job: Job, worker: Worker, signals: Signals, listener: Listener) -> Outcome:
    """Lap by lap, then walls and studies; every row is on disk as soon as it is final."""
    store, groups, terms, last = job.store, job.groups, job.terms, job.last
    beside: tuple[Wall | Planned, ...] = (*job.walls, *job.studies)
    left: list[Case | Wall | Planned] = [*(case for group in groups for case in group.cases), *beside]
    ids = {one.id for one in left}
    outcome = Outcome(path=store.path)
    outcome.statuses.update(row.status for case, row in last.items() if case not in ids)
    crew = Crew(terms, store.path / LOGS, signals.wake_fd)
    signals.second = lambda: crew.close(at_once=True)
    attempts = {case: row.attempt for case, row in last.items()}
    timeline = Timeline(store.path, terms.gpu_uuid or worker.ready["environment"]["device_uuid"])
    lap = Lap(Means(terms=terms, crew=crew, attempts=attempts, running=listener.running, timeline=timeline))
    hunt = Hunt(terms, crew, attempts, listener.running)
    inquiry = Inquiry(terms, crew, attempts, listener.running)

    def keep(records: Sequence[AnyRecord]) -> None:
        store.append(record.row() for record in records)
        for record in records:
            outcome.statuses[record.status] += 1
            listener.finished(record)

    done = sum(outcome.statuses.values())
    planned = {"cases": len(left) - len(beside) + done, "walls": len(job.walls), "studies": len(job.studies)}
    listener.begin(store.path, planned, done, job.remarks)
    reached: set[str] = set()
    try:
        crew.adopt(worker)
        for together in laps(groups, terms.plan):
            reached.update(case.id for group in together for case in group.cases)
            for record in lap.records([group.cases for group in together]):
                keep([record])
            signals.check()
        if groups:
            crew.close()  # walls are looked for in processes that nothing else has used
        for wall in job.walls:
            reached.add(wall.id)
            keep([hunt.record(wall)])
            signals.check()
        for study in job.studies:
            reached.add(study.id)
            keep([inquiry.record(study)])
            signals.check()
        crew.close()
    except Interrupted:
        outcome.signal = signals.received
        name = signal.Signals(signals.received or signal.SIGINT).name
        stopped = Status.INTERRUPTED, f"stopped by {name}; attnbench run --resume takes it up again"
        records: list[AnyRecord] = [*lap.unfinished(*stopped), *hunt.unfinished(*stopped), *inquiry.unfinished(*stopped)]
        crew.close(at_once=True)
        never = [one for one in left if one.id not in reached]
        keep(records)
        store.append(not_reached(one, terms, attempts, name).row() for one in never)
        outcome.statuses[Status.INTERRUPTED] += len(never)
    finally:
        crew.close(at_once=True)
        timeline.close()
        store.close()
    if timeline.failure:
        listener.remark(f"there is no timeline from some point on: {timeline.failure}")
    return outcome


def not_reached(one: Case | Wall | Planned, terms: Terms, attempts: dict[str, int], name: str) -> AnyRecord:
    reason = f"not reached: stopped by {name}; attnbench run --resume takes it up again"
    attempt, status, device = attempts.get(one.id, 0) + 1, Status.INTERRUPTED, terms.device
    if isinstance(one, Wall):
        return WallRecord(wall=one, device=device, attempt=attempt, status=status, reason=reason, memory_bytes=terms.budget_bytes)
    if isinstance(one, Planned):
        return StudyRecord(planned=one, device=device, attempt=attempt, status=status, reason=reason)
    return Record(case=one, device=device, attempt=attempt, status=status, reason=reason, **known(one.problem))


@contextmanager
def first_worker(wanted: str, signals: Signals) -> Iterator[Worker]:
    """The worker that also tells what this machine offers; gone at the end. Raises EnvironmentUnmet where it lacks the wanted device."""
    worker: Worker | None = None
    try:
        worker = Worker(wanted, signals.wake_fd)
        if worker.ready["why"]:
            raise EnvironmentUnmet(f"no {wanted} device: {worker.ready['why']}; run with --device cpu, or see attnbench doctor")
        yield worker
    except Interrupted:
        raise Stopped(signals.received or signal.SIGINT) from None
    except Fault as fault:
        raise EnvironmentUnmet(f"no worker could be started: {fault.reason}\n{fault.log_tail or ''}".rstrip()) from None
    finally:
        if worker is not None:
            worker.kill()


def device_for(worker: Worker, manner: Manner, signals: Signals) -> AbstractContextManager[None]:
    """Exclusive use of the device, as far as our own runs go."""
    device = worker.ready["environment"]["device_uuid"] or worker.ready["device"]
    return alone_on(device, wait=manner.wait, check=signals.check)


def calibration_of(root: Path, environment: Mapping[str, Any]) -> dict[str, Any] | None:
    """What `attnbench doctor --calibrate` found last on this device."""
    name = environment["device_name"] if environment["device"] == "cuda" else environment["cpu"]
    return newest_calibration(root, environment["device_uuid"], name)


def difference(key: str, then: dict[str, Any], now: dict[str, Any]) -> str:
    return (
        f"the run was measured with {key} {then.get(key)!r}, this environment has {now.get(key)!r}; "
        "rows of both would not be comparable: start a new run, or add --force"
    )
