"""How often a case is called before its blocks, and which blocks are measured again."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any, NamedTuple

from ..measure.clock import Between, Clock, Samples, Timer, nothing, now_s
from ..measure.conditions import HostConditions, always_ready, contended, has_low_clock
from ..measure.short_waits import ShortWaits
from ..rows.plans import CALLS_TO_TELL, MOST_TRIES, WARM_UP_S
from ..stats.intervals import stationary


def call_until_stationary(
    run: Callable[[], object],
    clock: Clock,
    readings: list[float],
    seconds: tuple[float, float],
    between: Between = nothing,
) -> tuple[bool | None, float]:
    """Call for the least of `seconds`, then until the times are stationary or the most is over.

    Calls that are short are made `CALLS_TO_TELL` times, however long the first one took.

    `readings`: of the calls so far, in ms, by the host's clock; those of calls here are the
    device's. Returns whether times are stationary, None if there were too few calls to tell, and
    how long a call takes now, in ms.
    """
    least_s, most_s = seconds
    before = len(readings)
    start = now_s() - sum(readings) / 1e3
    look_s = least_s
    while True:
        # Looks at growing times: a search for a trend after each of many short calls is slow.
        spent_s = now_s() - start
        if spent_s >= look_s:
            is_known = len(readings) - before >= CALLS_TO_TELL
            found = stationary(readings[before:] if is_known else readings)
            if found or (spent_s >= most_s and _has_settled(readings, most_s)):
                return found, median(readings[-5:])
            look_s = 1.25 * spent_s
        between(last=False)
        readings.append(clock.time_ms(run))


def _has_settled(readings: list[float], most_s: float) -> bool:
    """Whether time ended the warm-up, and not the first call alone, which may load libraries.

    On an H200 that took 50 to 100 ms of a call that then takes 0.02 ms.
    """
    if len(readings) < 2:
        return min(readings, default=0.0) > WARM_UP_S * 1e3
    return len(readings) >= CALLS_TO_TELL or CALLS_TO_TELL * min(readings) > most_s * 1e3


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
