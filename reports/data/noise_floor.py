"""How much equal cases differ on a device: within a process, between processes, between runs.

The rows of several processes say how much processes differ; without those `attnbench doctor --deep`
has, which keeps every check in selfcheck.jsonl; without a check it is assumed, by kind of device.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from math import log, log1p, sqrt
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...harness.files.safe_files import lines_of
from ...harness.rows.run_files import LINE_CAP_BYTES, ROWS, SCHEMA, BadRun, open_file
from ...harness.stats.contrasts import (
    Spread,
    assumed_spread,
    foreseen_spread,
    paired_contrast,
    spread,
)
from ...harness.stats.intervals import NORMAL_95, Samples, variance
from ..formatting import rough_percent_text
from .processor_time import in_most
from .run_meta import Run, device_identity, fact_differences, read_run, results_folders

FILE = "selfcheck.jsonl"
MOST_RATIO = 10.0  # a larger ratio is not noise
ASSUMED_RATIO = 0.3
"""By how much runs are taken to differ where nothing was measured, and processes on a CPU.

On a virtual machine with neighbours the medians of 26 fresh processes had a standard deviation of
about 8 %, so that two of them differ by up to 30 % (docs/method.md).
"""
ASSUMED_GPU_RATIO = 0.06
"""The same of processes on a GPU: in quickstart's six processes on an H200 the log medians of 26
cases had a standard deviation of 1.1 % (root mean square; 2.2 % at most), so that two of them
differ by up to 4 % (8 %).
"""
DISTURBED_RATIO = 3.0
"""The same where other work disturbed most blocks: what a quiet machine showed does not hold then.

In twelve quick runs of four equal backends beside two busy loops on two cores, one backend took 3.9
times as long as its equals in all eleven blocks of a run. Twice as long is not enough to allow for.
"""
FEWEST_STARTS = 3
"""Separate self-checks from which the spread between runs is known; t of two is useless."""
GOOD_STARTS = 6
"""With so many, intervals are half as wide as with three (Student t: 3.4 and 7.0)."""
FEWEST_PROCESSES = 3  # of a row that is used to learn how processes differ
MOST_BESIDE, MOST_LIKE = 30, 5  # folders that are looked at, runs that are read
MOST_LIKE_BYTES = 8_000_000  # of rows: a larger run is not read to learn from it
COMMITS = ("git", "attnbench")
"""Facts that may differ between checks, and between runs: a comparison of two versions shows them,
and does not warn.
"""
CHECK_DEGREES = 24  # of a check without samples: 3 backends, twice, in 5 processes

NoiseSource = Literal["selfcheck", "rows", "assumed"]


class NoiseFloor(NamedTuple):
    """The newest check. `between_runs`: what starts of the check differ by, None with fewer than
    FEWEST_STARTS; `starts`: how many there are under equal conditions. If the newest was
    undisturbed, those that other work disturbed do not count.
    """

    check: "Check"
    between_runs: Spread | None
    starts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessNoise:
    """How much processes differ, and how that is known."""

    spread: Spread
    source: NoiseSource

    @property
    def text(self) -> str:
        """`the 12 % that processes differ on this machine`."""
        return share_text(self.spread.ratio, self.source)


def newest_noise_floor(folders: Iterable[Path], identity: Mapping[str, Any]) -> NoiseFloor | None:
    """The newest check of this device in these folders; skips unreadable lines. Raises BadRun."""
    every = (check for folder in dict.fromkeys(folders) for check in _checks(folder / FILE))
    found = [check for check in every if check.is_of(identity)]
    if not found:
        return None
    newest = max(found, key=lambda check: check.started_utc)
    alike = [
        check
        for check in found
        if check.conditions == newest.conditions and check.is_disturbed <= newest.is_disturbed
    ]
    centres = [check.centres for check in alike if check.centres]
    return NoiseFloor(newest, spread_between(centres), len(alike))


def differ(source: str) -> str:
    """`differ on this machine`; `may differ` if that was not measured."""
    return "may differ" if source == "assumed" else "differ on this machine"


def share_text(ratio: float, source: str) -> str:
    """`the 12 % that processes differ on this machine`."""
    return f"the {rough_percent_text(ratio)} that processes {differ(source)}"


def process_noise(runs: Sequence[Run], of: Run) -> tuple[ProcessNoise, NoiseFloor | None]:
    """By the rows of `runs`, else by a check beside the run, else assumed."""
    identity = device_identity(of.meta)
    try:
        floor = newest_noise_floor(results_folders(of.path), identity)
    except BadRun:  # a file beside the run must not break its report
        floor = None
    rows = (row for run in runs if device_identity(run.meta) == identity for row in run.rows)
    learnt = spread_of_rows(rows)
    if learnt is not None:
        return ProcessNoise(spread=learnt, source="rows"), floor
    if floor is not None:
        return ProcessNoise(spread=floor.check.process, source="selfcheck"), floor
    return assumed_noise(of.meta["device"]), floor


def assumed_noise(device: str | None) -> ProcessNoise:
    return ASSUMED_ON_GPU if device == "cuda" else ASSUMED


DISTURBED = assumed_spread(DISTURBED_RATIO)
ASSUMED = ProcessNoise(spread=assumed_spread(ASSUMED_RATIO), source="assumed")
ASSUMED_ON_GPU = ProcessNoise(spread=assumed_spread(ASSUMED_GPU_RATIO), source="assumed")


def spread_of_rows(rows: Iterable[Mapping[str, Any]]) -> Spread | None:
    """How much the processes of rows differ; None if no row has at least three."""
    samples = (row.get("block_ms") or () for row in rows if row["status"] == "ok")
    several = (one for one in samples if len(one) >= FEWEST_PROCESSES)
    found = map(process_logs, several)
    return spread([logs for logs in found if len(logs) >= FEWEST_PROCESSES])


def spread_of_pairs(cases: Iterable[tuple[str, Hashable, Samples]]) -> Spread | None:
    """How much the ratio of two cases differs from process to process, by all cases of a run: the
    id, the blocks (None if not known) and the samples of each, none of a case that failed.

    Of the cases that were measured in the same blocks each stands in one pair, so that no process
    of a case counts twice. None with too few pairs of several processes.
    """
    together: dict[Hashable, list[Samples]] = {}
    for _, blocks, block_ms in sorted(cases, key=lambda one: one[0]):
        if blocks is not None:
            together.setdefault(blocks, []).append(block_ms)
    variances = []
    for samples in together.values():
        for one, other in zip(samples[::2], samples[1::2], strict=False):
            with suppress(ValueError):  # one of the two was measured again later
                pair = paired_contrast(one, other)
                if not pair.reason and len(pair.numerator) > 1:
                    variances.append((variance(pair.numerator), len(pair.numerator) - 1.0))
    return foreseen_spread(variances)


def spread_between(starts: Sequence[Mapping[str, float]]) -> Spread | None:
    """Of the logarithms of typical times, by case, from start to start; None with too few starts.

    The mean of the cases' variances: a run that is slow is slow in all cases, so that further cases
    give no further degrees of freedom.
    """
    shared = set.intersection(*map(set, starts)) if starts else set()
    if len(starts) < FEWEST_STARTS or not shared:
        return None
    learnt = [spread([[centres[case] for centres in starts]]) for case in sorted(shared)]
    variance = fmean(one.sd**2 for one in learnt if one is not None)
    return Spread(sd=sqrt(variance), degrees=len(starts) - 1)


def spread_of_runs_like(run: Run) -> Spread | None:
    """What the newest runs beside this one differ by that have its scenario, machine, versions and
    settings; None with too few of them. A link names a run that is there anyway.
    """
    like, beside = [run], []
    with suppress(OSError):
        beside = sorted(run.path.parent.iterdir(), reverse=True)
    for path in beside[:MOST_BESIDE]:
        if len(like) > MOST_LIKE or path.is_symlink() or path.name == run.path.resolve().name:
            continue
        with suppress(BadRun, OSError):
            if (path / ROWS).stat().st_size > MOST_LIKE_BYTES:
                continue
            other = read_run(path)
            if other.meta["scenario"] == run.meta["scenario"] and is_like(other.meta, run.meta):
                like.append(other)
    return spread_between([_centres(one) for one in like])


def is_like(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Of one machine, versions and settings; not of one commit."""
    return all(found.fact in COMMITS for found in fact_differences(one, other))


def _centres(run: Run) -> dict[str, float]:
    """Of each timed case the logarithm of its typical time, by its id."""
    timed = ((row["case"], process_logs(row.get("block_ms") or ())) for row in run.rows)
    return {case: median(logs) for case, logs in timed if logs}


def process_logs(block_ms: Samples) -> list[float]:
    medians = [[median(block) for block in process if block] for process in block_ms]
    return [log(median(blocks)) for blocks in medians if blocks and min(blocks) > 0]


# ---- selfcheck.jsonl -----------------------------------------------------------------------------


Noise = Annotated[float, Field(ge=0, lt=MOST_RATIO)]


class Check(BaseModel):
    """A line: 95 % of the ratios of equal code lie within 1 + these ratios, `paired` of the same
    blocks, `run` of different processes; `process` is the same as a spread.
    """

    model_config = ConfigDict(strict=True)

    schema_: Annotated[int, Field(alias="schema", ge=1, le=SCHEMA)]
    device: str
    started_utc: str
    paired_noise_ratio: Noise
    run_noise_ratio: Noise
    environment: dict[str, Any]
    blocks: int | None = None
    contended_blocks: int | None = None
    samples: Any = None

    def is_of(self, identity: Mapping[str, Any]) -> bool:
        known = {**self.environment, "device": self.device}
        return all(known.get(name) == fact for name, fact in identity.items())

    @property
    def conditions(self) -> dict[str, Any]:
        """Without what may differ between starts."""
        return {name: fact for name, fact in self.environment.items() if name not in COMMITS}

    @property
    def is_disturbed(self) -> bool:
        return in_most(self.contended_blocks, self.blocks)

    @cached_property
    def logs(self) -> Mapping[str, Sequence[float]]:
        """The logarithms of the processes' times in ms, by case; empty if they make no sense."""
        try:
            return {str(case): process_logs(one) for case, one in self.samples.items()}
        except (AttributeError, TypeError, ValueError, OverflowError):
            return {}

    @property
    def process(self) -> Spread:
        learnt = spread(list(self.logs.values()))
        if learnt is not None:
            return learnt
        sd = log1p(self.run_noise_ratio) / NORMAL_95 / sqrt(2)
        return Spread(sd=sd, degrees=CHECK_DEGREES)

    @property
    def centres(self) -> Mapping[str, float]:
        return {case: median(logs) for case, logs in self.logs.items() if logs}


def _checks(path: Path) -> Iterator[Check]:
    with open_file(path) or BytesIO() as file:
        for line in lines_of(file, LINE_CAP_BYTES):
            with suppress(ValidationError):  # a torn line
                yield Check.model_validate_json(line)
