"""How many blocks each case of a group gets: until its latency and its reported ratios are precise.

A block calls every case of a group in fresh random order, so that drift affects all of them alike
(random interleaving cut the run-to-run variance of google/benchmark by 40 %). The precision is
looked at after growing numbers of blocks, not after each: testing after every sample stops too
often by chance and covers the truth in 63 % of cases instead of 95 %.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, isfinite, isnan
from statistics import median
from typing import Any, Literal

from ..measure.conditions import contended, count_flagged, throttled
from ..rows.plans import BLOCK_MS, FEWEST_UNITS
from ..rows.record import Blocks
from ..scenario import Plan
from ..stats.intervals import latency_interval, ratio_interval

MAX_CALLS = 200  # per block
LEAST_WORK = 0.25  # of a disturbed call's time, for the number of calls in the next block
ALIKE_RATIO = 1.25  # calls whose times differ by less get equal numbers of calls

Stop = Literal["ci", "budget", "blocks"]


@dataclass(slots=True, kw_only=True)
class Sampling:
    """The samples of one case, [process][block] of each quantity of the clock.

    `stop` is set once there are enough. `stationary`: of each warm-up, as `stats.stationary`.
    `call_ms`: how long a call took last, in the warm-up or the latest block. `spent_s`: the time of
    its calls, by process.
    """

    quantities: dict[str, list[list[Any]]] = field(default_factory=dict)
    stationary: list[bool | None] = field(default_factory=list)
    call_ms: float = 0.0
    spent_s: dict[int, float] = field(default_factory=dict)
    stop: Stop | None = None
    pair_half_width_ratio: float | None = None

    @property
    def block_ms(self) -> Blocks:
        """The primary latency."""
        return self.quantities.get("block_ms", [])

    def add(self, process: int, block: dict[str, Any], spent_s: float) -> None:
        """One block: the readings of each quantity, or None."""
        for name, value in block.items():
            if value is not None:
                processes = self.quantities.setdefault(name, [])
                processes += ([] for _ in range(process + 1 - len(processes)))
                processes[process].append(value)
        self.call_ms = median(block["block_ms"])
        conditions = block.get("conditions", {})
        work_ms = conditions.get("thread_ms")
        if work_ms is not None and contended(conditions):
            self.call_ms = max(work_ms, self.call_ms * LEAST_WORK)
        self.spent_s[process] = self.spent_s.get(process, 0.0) + spent_s

    def forget(self, process: int) -> None:
        for processes in self.quantities.values():
            if process < len(processes):
                processes[process].clear()
        self.spent_s.pop(process, None)

    def blocks(self, process: int) -> int:
        return len(self.block_ms[process]) if process < len(self.block_ms) else 0

    @property
    def half_width_ratio(self) -> float:
        """NaN while there is no interval."""
        return latency_interval(self.block_ms).half_width_ratio

    @property
    def processes(self) -> int:
        return sum(1 for process in self.block_ms if process)

    @property
    def warmup_stationary(self) -> bool | None:
        """False if one warm-up was not stationary; None if one had too few calls to tell."""
        if False in self.stationary:
            return False
        return None if None in self.stationary or not self.stationary else True

    def fields(self) -> dict[str, Any]:
        """The fields of the case's row."""
        blocks = [block for process in self.quantities["conditions"] for block in process]
        return {
            **self.quantities,
            "processes": self.processes,
            "stop": self.stop,
            "half_width_ratio": None if isnan(self.half_width_ratio) else self.half_width_ratio,
            "pair_half_width_ratio": self.pair_half_width_ratio,
            "warmup_stationary": self.warmup_stationary,
            "contended_blocks": count_flagged(map(contended, blocks)),
            "throttled_blocks": count_flagged(map(throttled, blocks)),
        }


def calls_per_block(call_ms: float, block_ms: float) -> int:
    """Calls of `call_ms` each that fill a block: at least 1, at most MAX_CALLS."""
    return max(1, min(MAX_CALLS, ceil(block_ms / max(call_ms, 1e-6))))


class Sampler:
    """Decides which cases of a group get another block. `pairs`: whose ratios will be reported."""

    def __init__(
        self, plan: Plan, cases: Iterable[str], pairs: Iterable[tuple[str, str]] = ()
    ) -> None:
        self.plan = plan
        self.samplings = {name: Sampling() for name in cases}
        self.pairs = tuple(pairs)
        self.target = plan.min_blocks  # blocks per process at the next look
        units = plan.processes if plan.processes > 1 else plan.max_blocks
        self.fewest_units = min(FEWEST_UNITS, units)

    def drop(self, name: str) -> None:
        """Forget a case that failed."""
        self.samplings.pop(name, None)

    def wanting(self, process: int) -> list[str]:
        """The cases that need another block of this process before the next look."""
        self._stop_spent()
        live = self._live()
        processes = range(self.plan.processes)
        if live and not any(self.wants(name, one) for name in live for one in processes):
            self._look(live)
            live = self._live()
        return [name for name in live if self.wants(name, process)]

    def wants(self, name: str, process: int) -> bool:
        """Whether a case needs another block of a process before the next look.

        Processes come before blocks: one that has used its share of the time leaves the rest to the
        others, as soon as it has a block.
        """
        sampling = self.samplings[name]
        blocks = sampling.blocks(process)
        share_s = self.plan.budget_s / self.plan.processes
        fewest = 1 if self.plan.processes > 1 else self.fewest_units
        spent = sampling.spent_s.get(process, 0.0) >= share_s and blocks >= fewest
        return blocks < self.target and not spent

    def blocks_left(self, name: str, process: int) -> int:
        """Of a process before the next look, if time does not end it; at least 1."""
        return max(1, self.target - self.samplings[name].blocks(process))

    def forget(self, process: int, names: Iterable[str]) -> None:
        """A process was lost: its blocks of these cases do not count, another one's will."""
        for name in names:
            if name in self.samplings:
                self.samplings[name].forget(process)

    def calls(self, names: Iterable[str], device: str, more: float = 1.0) -> dict[str, int]:
        """How many calls each case makes in the next block, from how long they took last; `more`:
        times as many, where there are several.

        The median of a block depends on its number of calls. So cases that take about equally long,
        which a comparison may tell apart by little, get the number of the longest of them.
        """
        found: dict[str, int] = {}
        longest = 0.0
        for name in sorted(names, key=lambda name: -self.samplings[name].call_ms):
            call_ms = self.samplings[name].call_ms
            if call_ms * ALIKE_RATIO < longest or not longest:
                longest = call_ms
            found[name] = calls_per_block(longest, more * BLOCK_MS[device])
        return found

    def done(self, name: str) -> int:
        """How many of the blocks that a case may get it has; where time ends it, by the time."""
        plan, sampling = self.plan, self.samplings[name]
        share_s = plan.budget_s / plan.processes
        processes = sum(
            min(1.0, max(sampling.blocks(one) / plan.max_blocks, spent_s / share_s))
            for one, spent_s in sampling.spent_s.items()
        )
        return round(plan.max_blocks * processes)

    def finish(self) -> None:
        """Note for every case how precise the widest of its reported ratios is."""
        for pair in self.pairs:
            if not all(name in self.samplings and self.samplings[name].block_ms for name in pair):
                continue
            width = self._pair_half_width(pair)
            for sampling in (self.samplings[name] for name in pair):
                if isfinite(width):
                    widest = max(width, sampling.pair_half_width_ratio or 0.0)
                    sampling.pair_half_width_ratio = widest

    def _live(self) -> list[str]:
        return [name for name, sampling in self.samplings.items() if sampling.stop is None]

    def _stop_spent(self) -> None:
        for sampling in self.samplings.values():
            units = sampling.processes if self.plan.processes > 1 else sampling.blocks(0)
            spent = sum(sampling.spent_s.values()) >= self.plan.budget_s
            if sampling.stop is None and spent and units >= self.fewest_units:
                sampling.stop = "budget"

    def _look(self, live: Sequence[str]) -> None:
        """No live case wants a block before this look: stop the precise, raise `target`."""
        wide = self._wide_pairs()
        units = self.plan.processes if self.plan.processes > 1 else self.target
        for name in live:
            sampling = self.samplings[name]
            precise = sampling.half_width_ratio <= self.plan.precision_ratio  # False for NaN
            if precise and name not in wide and units >= self.fewest_units:
                sampling.stop = "ci"
            elif self.target >= self.plan.max_blocks:
                processes = range(self.plan.processes)
                full = all(sampling.blocks(one) >= self.target for one in processes)
                sampling.stop = "blocks" if full else "budget"
        self.target = min(self.plan.max_blocks, ceil(self.target * 4 / 3))

    def _wide_pairs(self) -> set[str]:
        """Cases of a pair whose ratio is not precise yet, while both can still be measured."""
        wide: set[str] = set()
        live = set(self._live())
        for pair in filter(live.issuperset, self.pairs):
            if not self._pair_half_width(pair) <= self.plan.precision_ratio:  # True for NaN
                wide.update(pair)
        return wide

    def _pair_half_width(self, pair: tuple[str, str]) -> float:
        one, other = (self.samplings[name].block_ms for name in pair)
        return ratio_interval(one, other).half_width_ratio
