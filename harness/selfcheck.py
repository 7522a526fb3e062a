"""A/A: every backend against itself, side by side as in any run. Whatever difference shows is the
instrument's, and the machine's.

The floors that come out say which differences can be believed here. They are appended to
selfcheck.jsonl with all samples.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import exp, log, sqrt
from pathlib import Path
from statistics import mean, median, stdev
from tempfile import TemporaryDirectory
from typing import Any

from ..impls.problem import Problem
from .cases import Case
from .errors import BadInput, EnvironmentUnmet
from .measure.clock import HostClock
from .process.signals import Signals
from .record import SCHEMA, Record, Status
from .run.environments import FINGERPRINT, device_for, first_of, first_workers
from .run.group import Means
from .run.schedule import Lap
from .run.start import SAFE_SHARE, Manner
from .run.worker_pool import Crew, Terms
from .scenario import Plan
from .stats import Interval, ratio_interval

BACKENDS = ("naive", "fused", "sdpa")
FILE = "selfcheck.jsonl"
MOST_CHANCE = 1
"""Of three comparisons one may go wrong by chance (1 run in 7); two go wrong in 1 run of 140."""
NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A backend and its twin. `told_apart`: their interval leaves out 1, which is a false alarm."""

    backend: str
    ratio: Interval
    within_ratio: float
    between_ratio: float

    @property
    def told_apart(self) -> bool:
        return not self.ratio.low <= 1 <= self.ratio.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the check came to. Ratios are half-widths: 0.02 means that 2 % either way is noise.

    `paired_noise_ratio`: 95 % of ratios of two equal members of one process lie within it.
    `run_noise_ratio`: the same for two processes, one member each: what unpaired comparisons of
    quick runs have to reckon with.
    """

    device: str
    started_utc: str
    pairs: Sequence[Pair]
    paired_noise_ratio: float
    run_noise_ratio: float
    clock_overhead_ms: float
    shortest_ms: float
    blocks: int
    contended_blocks: int
    throttled_blocks: int

    @property
    def false_alarms(self) -> int:
        return sum(pair.told_apart for pair in self.pairs)

    @property
    def exit_code(self) -> int:
        return 1 if self.false_alarms > MOST_CHANCE else 0


def selfcheck(device: str, root: Path, seed: int, manner: Manner) -> Verdict:
    """Measure, judge, and append to `root`/selfcheck.jsonl. Raises Refusal where there is no such
    device or a backend cannot run.
    """
    with (
        Signals() as signals,
        first_workers(device, signals) as workers,
        device_for(worker := first_of(workers), signals, wait=manner.wait),
        TemporaryDirectory() as logs,
    ):
        found = worker.ready["device"]
        cases = twins(found)
        terms = Terms(
            device=found,
            # The same number of blocks on every machine: the least precision is never reached.
            plan=Plan(processes=5, min_blocks=4, max_blocks=4, precision_ratio=1e-9, budget_s=10.0),
            measure=("latency",),
            timeout_s=60.0,
            budget_bytes=int(SAFE_SHARE * worker.free_bytes()),
            seed=seed,
            baseline=None,
            contrast=(),
        )
        started = datetime.now(UTC).isoformat(timespec="seconds")
        crew = Crew(terms, Path(logs), signals.wake_fd)
        signals.second = lambda: crew.close(at_once=True)
        manner.listener.begin(root / FILE, {"cases": len(cases)}, 0, [])
        try:
            crew.adopt(worker)
            records = []
            means = Means(terms=terms, crew=crew, attempts={}, running=manner.listener.running)
            for record in Lap(means).records([cases]):
                records.append(record)
                manner.listener.finished(record)
        finally:
            crew.close(at_once=True)
        verdict = judge(found, started, records)
        keep(root, verdict, records, worker.ready["environment"])
        return verdict


def twins(device: str) -> tuple[Case, ...]:
    """Calls of a few ms on two cores, and of some tens of microseconds on a GPU: where noise is
    largest.
    """
    length, dtype = (1024, "bf16") if device == "cuda" else (512, "fp32")
    problem = Problem(batch=1, seq_len=length, d_model=512, heads=8, dtype=dtype)  # type: ignore[arg-type]
    return tuple(
        Case(backend=backend, problem=problem, twin=twin) for backend in BACKENDS for twin in (0, 1)
    )


def judge(device: str, started_utc: str, records: Sequence[Record]) -> Verdict:
    """Raises EnvironmentUnmet where a case did not end well: there is nothing to compare then."""
    for record in records:
        if record.status is not Status.OK or record.block_ms is None:
            raise EnvironmentUnmet(
                f"selfcheck: {record.id} ended as {record.status}: {record.reason}; see attnbench"
                " doctor"
            )
    by_case = {(record.case.backend, record.case.twin): record for record in records}
    pairs = [pair_of(backend, by_case[backend, 0], by_case[backend, 1]) for backend in BACKENDS]
    medians = [
        median(call for process in r.block_ms or [] for block in process for call in block)
        for r in records
    ]
    return Verdict(
        device=device,
        started_utc=started_utc,
        pairs=pairs,
        paired_noise_ratio=exp(sqrt(mean(pair.within_ratio**2 for pair in pairs))) - 1,
        run_noise_ratio=exp(sqrt(mean(pair.between_ratio**2 for pair in pairs))) - 1,
        clock_overhead_ms=clock_overhead_ms(),
        shortest_ms=min(medians),
        blocks=sum(len(process) for record in records for process in record.block_ms or []),
        contended_blocks=sum(record.contended_blocks or 0 for record in records),
        throttled_blocks=sum(record.throttled_blocks or 0 for record in records),
    )


def pair_of(backend: str, one: Record, other: Record) -> Pair:
    """Log-ratios within a process have the mean 0 by design, so their size is their root mean
    square.
    """
    assert one.block_ms is not None
    assert other.block_ms is not None
    logs = [
        [[log(median(block)) for block in process] for process in record.block_ms or []]
        for record in (one, other)
    ]
    within = [median(a - b for a, b in zip(*pair, strict=True)) for pair in zip(*logs, strict=True)]
    between = [stdev(map(median, processes)) for processes in logs if len(processes) > 1]
    return Pair(
        backend=backend,
        ratio=ratio_interval(one.block_ms, other.block_ms),
        within_ratio=NORMAL_95 * sqrt(mean(difference**2 for difference in within)),
        between_ratio=NORMAL_95 * sqrt(2 * mean(sd**2 for sd in between)) if between else 0.0,
    )


def clock_overhead_ms() -> float:
    """What the host clock adds to a call: the time that it reads for nothing."""
    return median(HostClock().timer(lambda: None, 0.0).sample(2000).block_ms)


def keep(
    root: Path, verdict: Verdict, records: Sequence[Record], environment: dict[str, Any]
) -> None:
    """One more line; earlier checks stay. Raises BadInput where the folder cannot be written."""
    line = {
        "schema": SCHEMA,
        **{name: value for name, value in asdict(verdict).items() if name != "pairs"},
        "false_alarms": verdict.false_alarms,
        "pairs": [{**asdict(pair), "told_apart": pair.told_apart} for pair in verdict.pairs],
        "environment": {name: environment.get(name) for name in FINGERPRINT},
        "samples": {record.id: record.block_ms for record in records},
    }
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")
    except OSError as error:
        raise BadInput(
            f"{root}: cannot write {FILE} here ({error.strerror}); choose another with --out DIR"
        ) from None
