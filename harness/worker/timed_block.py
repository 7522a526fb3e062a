"""One block of one case: measured again, while that may help, if other work disturbed it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..measure.clock import Between, Samples, Timer
from ..measure.conditions import HostConditions, always_ready, contended, has_low_clock
from ..measure.short_waits import ShortWaits
from ..rows.plans import MOST_TRIES

MOST_FAULTS = 1_000  # pages of a block with a warm heap; 4 MiB
MOST_COLD_S = 3.0  # a block that found the heap cold may take so long to be repeated
MOST_AGAIN_S = 0.5  # a block that took longer is not repeated
CLOCK_RISES_S = 0.05  # as long nvbench waits first, after a sample with a low clock


class TimedBlock(NamedTuple):
    """`spent_s`: the time of all calls, those of tries that do not count too."""

    samples: Samples
    conditions: dict[str, Any]
    spent_s: float


class BlockTimer:
    """Measures blocks. What it does next depends on who else ran, never on how long calls took.

    A block in which a GPU's clock was low is measured again, a disturbed one, and one that found
    the heap cold. If that is disturbed too,
    threads are kept from spinning while they wait, so that the processor time of a call is its own
    work (docs/method.md, Conditions). It goes on so until a block is not disturbed; that one is
    measured again as usual.
    """

    def __init__(
        self, conditions: HostConditions, waits: ShortWaits | None, *, heap_is_warm: bool
    ) -> None:
        self.conditions = conditions
        self.waits = waits  # None: calls do not run on a processor
        self.heap_is_warm = heap_is_warm

    def measure(self, timer: Timer, calls: int, between: Between, *, first: bool) -> TimedBlock:
        spent_s = 0.0
        first_of: dict[str, float | None] = {}
        for tried in range(1, MOST_TRIES + 1):
            samples, readings = self._try(timer, calls, between, first=first)
            spent_s += samples.spent_s
            # only the first try finds the new values as new as they are
            first_of = first_of or {"first_call_ms": samples.first_ms}
            if tried == 1 and spent_s < MOST_COLD_S and self._is_cold(readings):
                continue
            is_long = spent_s >= MOST_AGAIN_S
            if not self._prepare_again(readings, patient=tried == 1 and not is_long) or is_long:
                break
        known = {**first_of, "late_calls": samples.late_calls, "tries": tried, **readings}
        conditions = {name: value for name, value in known.items() if value is not None}
        return TimedBlock(samples, conditions, spent_s)

    @contextmanager
    def foreseeing(self) -> Iterator[None]:
        """Around calls that are not measured: what disturbs them will disturb blocks too."""
        self.conditions.before()
        yield
        if self.waits is not None and contended(self.conditions.after()):
            self.waits.begin()

    def end(self) -> None:
        """Let threads wait as they would."""
        if self.waits is not None:
            self.waits.end()

    def _try(
        self, timer: Timer, calls: int, between: Between, *, first: bool
    ) -> tuple[Samples, dict[str, Any]]:
        is_short = self.waits is not None and self.waits.in_force
        self.conditions.before()
        samples = timer.sample(calls, self.conditions.during(between), first=first)
        readings: dict[str, Any] = self.conditions.after()
        if self.waits is not None:
            holds = is_short or self.waits.needless or not contended(readings)
            if holds and always_ready(readings):
                times = {"processor_ms": samples.processor_ms, "thread_ms": samples.thread_ms}
                readings |= times
            readings["short_waits"] = int(is_short)
        return samples, readings

    def _is_cold(self, readings: dict[str, Any]) -> bool:
        return self.heap_is_warm and readings["minor_faults"] > MOST_FAULTS

    def _prepare_again(self, readings: dict[str, Any], *, patient: bool) -> bool:
        """Whether to measure the block again. `patient`: what disturbed it may have ended."""
        if self.waits is None:
            is_slow = has_low_clock(readings)
            if is_slow:
                time.sleep(CLOCK_RISES_S)
            return is_slow
        is_disturbed = contended({**readings, "short_waits": 0})
        if readings["short_waits"]:
            if not is_disturbed:
                self.waits.end()
            return not is_disturbed
        if is_disturbed and not patient:
            self.waits.begin()
        return bool(is_disturbed) and not self.waits.needless
