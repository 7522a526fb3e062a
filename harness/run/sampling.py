"""How many blocks a group's members get: enough for the wanted precision of each and of each
reported pair, never beyond the budget.

A block calls every member of a group in fresh random order, so that drift touches all of them alike
(random interleaving cut the run-to-run variance of google/benchmark by 40 %). Looks come at growing
numbers of blocks, not after each: testing after every sample stops too often by luck and covers the
truth in 63 % of cases instead of 95 %.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, isfinite, isnan
from typing import Any, Literal

from ..measure.conditions import contended, flagged, throttled
from ..scenario import Plan
from ..stats import latency_interval, ratio_interval

# two have an interval that is useless (t = 12.7), so even an exhausted budget waits for the third
FEWEST_UNITS = 3
MOST_CALLS = 200

Stop = Literal["ci", "budget", "blocks"]
Blocks = list[list[list[float]]]


@dataclass(slots=True, kw_only=True)
class Sampling:
    """The samples of one member while they come in, [process][block] of every quantity that the
    clock gives; `stop` once it has enough.
    """

    quantities: dict[str, list[list[Any]]] = field(default_factory=dict)
    steady: list[bool | None] = field(default_factory=list)
    spent_s: float = 0.0
    stop: Stop | None = None
    pair_half_width_ratio: float | None = None

    @property
    def block_ms(self) -> Blocks:
        """The primary latency."""
        return self.quantities.get("block_ms", [])

    def add(self, process: int, block: dict[str, Any], spent_s: float) -> None:
        """One block: for each quantity its readings, or None where there is none."""
        for name, value in block.items():
            if value is not None:
                processes = self.quantities.setdefault(name, [])
                processes += ([] for _ in range(process + 1 - len(processes)))
                processes[process].append(value)
        self.spent_s += spent_s

    def blocks(self, process: int) -> int:
        return len(self.block_ms[process]) if process < len(self.block_ms) else 0

    @property
    def half_width_ratio(self) -> float:
        """NaN where there is no interval yet."""
        return latency_interval(self.block_ms).half_width_ratio

    @property
    def processes(self) -> int:
        return sum(1 for process in self.block_ms if process)

    @property
    def warmup_stationary(self) -> bool | None:
        """Whether every warm-up came to rest; None where some had too few calls to tell, and none
        is known not to have.
        """
        return (
            False
            if False in self.steady
            else None
            if None in self.steady or not self.steady
            else True
        )

    def fields(self) -> dict[str, Any]:
        """What a row says of the samples."""
        blocks = [block for process in self.quantities["conditions"] for block in process]
        return {
            **self.quantities,
            "processes": self.processes,
            "stop": self.stop,
            "half_width_ratio": None if isnan(self.half_width_ratio) else self.half_width_ratio,
            "pair_half_width_ratio": self.pair_half_width_ratio,
            "warmup_stationary": self.warmup_stationary,
            "contended_blocks": flagged(map(contended, blocks)),
            "throttled_blocks": flagged(map(throttled, blocks)),
        }


class Sampler:
    """Decides, for the members of one group, who is measured again. `pairs`: whose ratios will be
    reported.
    """

    def __init__(
        self, plan: Plan, members: Iterable[str], pairs: Iterable[tuple[str, str]] = ()
    ) -> None:
        self.plan = plan
        self.samplings = {name: Sampling() for name in members}
        self.pairs = tuple(pairs)
        self.target = plan.min_blocks  # blocks per process at the next look
        self.fewest_units = min(
            FEWEST_UNITS, plan.processes if plan.processes > 1 else plan.max_blocks
        )

    def drop(self, name: str) -> Sampling | None:
        """Forget a member that goes no further."""
        return self.samplings.pop(name, None)

    def wanting(self, process: int) -> list[str]:
        """Who should be measured once more by `process` in the round that is under way."""
        self._end_the_spent()
        live = self._live()
        if live and all(
            self.samplings[name].blocks(p) >= self.target
            for name in live
            for p in range(self.plan.processes)
        ):
            self._look(live)
            live = self._live()
        return [name for name in live if self.samplings[name].blocks(process) < self.target]

    def _live(self) -> list[str]:
        return [name for name, sampling in self.samplings.items() if sampling.stop is None]

    def _end_the_spent(self) -> None:
        for sampling in self.samplings.values():
            units = sampling.processes if self.plan.processes > 1 else sampling.blocks(0)
            if (
                sampling.stop is None
                and sampling.spent_s >= self.plan.budget_s
                and units >= self.fewest_units
            ):
                sampling.stop = "budget"

    def _look(self, live: Sequence[str]) -> None:
        """Every live member has `target` blocks in every process: end those that are precise, set
        the next target.
        """
        wide = self._wide_pairs()
        units = self.plan.processes if self.plan.processes > 1 else self.target
        for name in live:
            sampling = self.samplings[name]
            precise = sampling.half_width_ratio <= self.plan.precision_ratio  # false for NaN
            if precise and name not in wide and units >= self.fewest_units:
                sampling.stop = "ci"
            elif self.target >= self.plan.max_blocks:
                sampling.stop = "blocks"
        self.target = min(self.plan.max_blocks, ceil(self.target * 4 / 3))

    def _wide_pairs(self) -> set[str]:
        """Members of a pair whose ratio is not known well enough, as long as both can still be
        measured.
        """
        wide: set[str] = set()
        for pair in self.pairs:
            both_live = all(
                name in self.samplings and self.samplings[name].stop is None for name in pair
            )
            if (
                both_live and not self._pair_half_width(pair) <= self.plan.precision_ratio
            ):  # true for NaN
                wide.update(pair)
        return wide

    def _pair_half_width(self, pair: tuple[str, str]) -> float:
        one, other = (self.samplings[name].block_ms for name in pair)
        return ratio_interval(one, other).half_width_ratio

    def settle(self) -> None:
        """Say of every member how well the widest of its reported ratios is known; call it once
        sampling has ended.
        """
        for pair in self.pairs:
            if not all(name in self.samplings and self.samplings[name].block_ms for name in pair):
                continue
            width = self._pair_half_width(pair)
            for name in pair:
                sampling = self.samplings[name]
                if isfinite(width):
                    sampling.pair_half_width_ratio = max(
                        width, sampling.pair_half_width_ratio or 0.0
                    )


def calls_per_block(call_ms: float, block_ms: float) -> int:
    """Calls of `call_ms` each that fill a block: at least 1, at most 200."""
    return max(1, min(MOST_CALLS, ceil(block_ms / max(call_ms, 1e-6))))
