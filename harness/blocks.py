"""How many blocks a case gets: enough for the wanted precision, never more than its budget.

A block calls every member of a group in fresh random order, so that drift touches all of them alike (random interleaving cut
the run-to-run variance of google/benchmark by 40 %). Looks come at growing numbers of blocks, not after each: testing
after every sample stops too often by luck and covers the truth in 63 % of cases instead of 95 %.
"""

from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from .scenario import Plan
from .stats import latency_interval

FEWEST_UNITS = 3  # two have an interval that is useless (t = 12.7), so even an exhausted budget waits for the third
MOST_CALLS = 200

Stop = Literal["ci", "budget", "blocks"]


@dataclass(slots=True, kw_only=True)
class Sampling:
    """The samples of one case while they come in, and whether it wants more."""

    plan: Plan
    block_ms: list[list[list[float]]] = field(default_factory=list)
    wall_block_ms: list[list[list[float]]] = field(default_factory=list)
    spent_s: float = 0.0
    stop: Stop | None = None

    def add(self, process: int, block: list[float], wall: list[float] | None) -> None:
        for lists, values in ((self.block_ms, block), (self.wall_block_ms, wall)):
            if values is not None:
                while len(lists) <= process:
                    lists.append([])
                lists[process].append(values)
        self.spent_s += sum(block) / 1e3

    def wants_block(self, process: int) -> bool:
        """Whether `process` should measure this case once more in the round that is under way."""
        self._look()
        have = len(self.block_ms[process]) if process < len(self.block_ms) else 0
        return self.stop is None and have < self._target()

    def _target(self) -> int:
        """Blocks per process up to the next look: the plan's fewest, then a third more each time."""
        target = self.plan.min_blocks
        while all(len(process) >= target for process in self._processes()) and target < self.plan.max_blocks:
            target = min(self.plan.max_blocks, ceil(target * 4 / 3))
        return target

    def _processes(self) -> list[list[list[float]]]:
        """One list of blocks per process of the plan, empty where it has not begun."""
        return self.block_ms + [[] for _ in range(self.plan.processes - len(self.block_ms))]

    def _look(self) -> None:
        if self.stop is not None or not self.block_ms:
            return
        counts = [len(process) for process in self._processes()]
        units = sum(1 for count in counts if count) if self.plan.processes > 1 else counts[0]
        most_units = self.plan.processes if self.plan.processes > 1 else self.plan.max_blocks
        round_done = min(counts) == max(counts) and self._is_look(counts[0])
        if round_done and units >= min(FEWEST_UNITS, most_units) and self.half_width_ratio <= self.plan.precision_ratio:
            self.stop = "ci"
        elif min(counts) >= self.plan.max_blocks:
            self.stop = "blocks"
        elif self.spent_s >= self.plan.budget_s and units >= min(FEWEST_UNITS, most_units):
            self.stop = "budget"

    def _is_look(self, blocks: int) -> bool:
        look = self.plan.min_blocks
        while look < blocks:
            look = min(self.plan.max_blocks, ceil(look * 4 / 3))
        return look == blocks

    @property
    def half_width_ratio(self) -> float:
        """NaN where there is no interval yet."""
        return latency_interval(self.block_ms).half_width_ratio

    @property
    def processes(self) -> int:
        return sum(1 for process in self.block_ms if process)


def calls_per_block(call_ms: float, block_ms: float) -> int:
    """Calls of `call_ms` each that fill a block: at least 1, at most 200."""
    return max(1, min(MOST_CALLS, ceil(block_ms / max(call_ms, 1e-6))))
