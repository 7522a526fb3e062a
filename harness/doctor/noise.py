"""A/A: measure every backend against itself, so that any difference is the instrument's noise.

The noise floors say which differences can be believed on this machine. They are appended to
selfcheck.jsonl with all samples.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from math import exp, log, sqrt
from pathlib import Path
from statistics import mean, median, stdev
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ...impls.problem import Dtype, Problem
from ..cases.case import Case
from ..devices.calibration_file import append_line
from ..files.errors import EnvironmentUnmet
from ..measure.clock import HostClock
from ..rows.record import Blocks, Record, Status
from ..rows.run_files import COMPARED_FACTS, SCHEMA
from ..run.engine import RunOptions
from ..run.listener import Begun
from ..run.run_rows import steps_of
from ..run.schedule import Schedule
from ..run.session import open_here
from ..run.spec import RunSpec
from ..run.start import SAFE_SHARE
from ..run.worker_pool import Runtime
from ..scenario import Limits, Plan, Scenario
from ..stats.intervals import Interval, log_ratios, ratio_interval

if TYPE_CHECKING:
    from ...reports.data.noise_floor import NoiseFloor as KnownNoise

BACKENDS = ("naive", "fused", "sdpa")
SCENARIO = Scenario(
    name="selfcheck",
    question="How different do equal cases seem?",
    backends=BACKENDS,
    # The same number of blocks on every machine: the precision is never reached.
    plan=Plan(processes=5, min_blocks=4, max_blocks=4, precision_ratio=1e-9, budget_s=10.0),
    measure=("latency",),
    limits=Limits(timeout_s=60.0),
)
FILE = "selfcheck.jsonl"
MAX_FALSE_ALARMS = 1
"""Of three comparisons one may fail by chance (1 run in 7); two fail in 1 run of 140."""
NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A backend and its twin. `told_apart`: their interval excludes 1, a false alarm."""

    backend: str
    ratio: Interval
    within_ratio: float
    between_ratio: float
    told_apart: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """The result. Ratios are half-widths: 0.02 means that 2 % either way is noise.

    `paired_noise_ratio`: 95 % of the ratios of two equal cases in one process lie within it.
    `run_noise_ratio`: the same for two processes, which is what unpaired comparisons of quick runs
    have to allow for.
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
    false_alarms: int
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_off(self) -> bool:
        return self.false_alarms > MAX_FALSE_ALARMS

    def as_dict(self) -> dict[str, Any]:
        """For --json, and with `schema` and `samples` a line of selfcheck.jsonl."""
        return asdict(self)


def noise_known(root: Path, check: Callable[[int], NoiseFloor]) -> NoiseFloor:
    """The last of as many checks as comparing two runs wants; one if those are there.

    `check`: does one, given its seed.
    """
    from ...reports.data.noise_floor import GOOD_STARTS

    for start in range(GOOD_STARTS):
        floor = check(start)
        known = newest_noise(floor, root)
        if known is None or known.starts >= GOOD_STARTS:
            break
    return floor


def newest_noise(floor: NoiseFloor, root: Path) -> "KnownNoise | None":
    """What comparisons on this machine know of it, `floor` included."""
    from ...reports.data.noise_floor import newest_noise_floor
    from ...reports.data.run_meta import device_identity

    identity = device_identity({"device": floor.device, "environment": floor.environment})
    return newest_noise_floor([root], identity)


def selfcheck(device: str, root: Path, seed: int, options: RunOptions) -> NoiseFloor:
    """Measure, evaluate, and append to `root`/selfcheck.jsonl.

    Raises Refusal if there is no such device or a backend cannot run.
    """
    listener = options.listener
    with open_here(device, (), options) as here, TemporaryDirectory() as folder:
        cases = twins(here.environment["device"])
        spec = RunSpec.new(
            SCENARIO,
            {"cases": [case.fields() for case in cases]},
            here.environment,
            memory_bytes=int(SAFE_SHARE * here.free_bytes),
            seed=seed,
        )
        pool = here.pool
        here.signals.second = lambda: pool.close(at_once=True)
        steps = {case.id: steps_of(case, spec) for case in cases}
        listener.begin(Begun(root / FILE, {"cases": len(cases)}, steps=steps))
        try:
            pool.configure(spec, Path(folder))
            records = []
            runtime = Runtime(spec=spec, pool=pool, listener=listener)
            for record in Schedule(runtime).records([cases]):
                records.append(record)
                listener.finished(record)
        finally:
            pool.close(at_once=True)
        facts = {name: here.environment.get(name) for name in COMPARED_FACTS}
        floor = replace(noise_floor(spec.device, spec.started_utc, records), environment=facts)
        append(root, floor, records)
        return floor


def twins(device: str) -> tuple[Case, ...]:
    """Short calls, where noise is largest: a few ms on two cores, tens of microseconds on a GPU."""
    dtype: Dtype = "bf16" if device == "cuda" else "fp32"
    seq_len = 1024 if device == "cuda" else 512
    problem = Problem(batch=1, seq_len=seq_len, d_model=512, heads=8, dtype=dtype)
    return tuple(
        Case(backend=backend, problem=problem, twin=twin) for backend in BACKENDS for twin in (0, 1)
    )


def noise_floor(device: str, started_utc: str, records: Sequence[Record]) -> NoiseFloor:
    """Raises EnvironmentUnmet if a case failed: there is nothing to compare then."""
    cases = {case.id: case for case in twins(device)}
    by_case: dict[tuple[str, int], Blocks] = {}
    for record in records:
        if record.status is not Status.OK or record["block_ms"] is None:
            ended = f"{record.id} ended as {record.status}: {record.reason}"
            raise EnvironmentUnmet(f"selfcheck: {ended}; see attnbench doctor")
        case = cases[record.id]
        by_case[case.backend, case.twin] = record["block_ms"]
    pairs = [pair_of(backend, by_case[backend, 0], by_case[backend, 1]) for backend in BACKENDS]
    blocks = [[block for process in every for block in process] for every in by_case.values()]
    return NoiseFloor(
        device=device,
        started_utc=started_utc,
        pairs=pairs,
        paired_noise_ratio=exp(sqrt(mean(pair.within_ratio**2 for pair in pairs))) - 1,
        run_noise_ratio=exp(sqrt(mean(pair.between_ratio**2 for pair in pairs))) - 1,
        clock_overhead_ms=clock_overhead_ms(),
        shortest_ms=min(median(chain.from_iterable(every)) for every in blocks),
        blocks=sum(map(len, blocks)),
        contended_blocks=sum(record["contended_blocks"] or 0 for record in records),
        throttled_blocks=sum(record["throttled_blocks"] or 0 for record in records),
        false_alarms=sum(pair.told_apart for pair in pairs),
    )


def pair_of(backend: str, one: Blocks, other: Blocks) -> Pair:
    """Log-ratios within a process have mean 0 by design; their size is the root mean square."""
    # A twin that other work slowed down, until the budget was spent, has fewer blocks.
    within = [median(ratios) for ratios in log_ratios(one, other) if ratios]
    levels = [
        [median(log(median(block)) for block in process) for process in blocks if process]
        for blocks in (one, other)
    ]
    between = [stdev(processes) for processes in levels if len(processes) > 1]
    ratio = ratio_interval(one, other)
    return Pair(
        backend=backend,
        ratio=ratio,
        told_apart=not ratio.low <= 1 <= ratio.high,
        within_ratio=NORMAL_95 * sqrt(mean(difference**2 for difference in within)),
        between_ratio=NORMAL_95 * sqrt(2 * mean(sd**2 for sd in between)) if between else 0.0,
    )


def clock_overhead_ms() -> float:
    """What the host clock adds to a call: its reading of an empty one."""
    return median(HostClock().timer(lambda: None, 0.0).sample(2000).block_ms)


def append(root: Path, floor: NoiseFloor, records: Sequence[Record]) -> None:
    """Add one line; earlier ones stay. Raises BadInput if the folder cannot be written."""
    samples = {record.id: record["block_ms"] for record in records}
    append_line(root / FILE, {"schema": SCHEMA, **floor.as_dict(), "samples": samples})
