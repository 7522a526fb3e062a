"""Time several launches on the device, by turns, so that neither the host nor the clock chooses.

A launch takes the host 25 to 70 us, about what a short kernel runs for. So a kernel that only waits
goes first: while it runs the host fills the queue, and the events enclose the device's work alone.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from math import ceil
from statistics import median
from time import perf_counter

import torch

ROUNDS = 5  # readings of each candidate; their median counts
DROPPED_RATIO = 1.5  # of the fastest in the first round: a slower candidate is not read again
FIRST_LAUNCHES = 3  # of the first round, which shows how many the others need
FEWEST_LAUNCHES, MOST_LAUNCHES = 2, 10
READING_MS = 1.0  # of work in a reading: events resolve half a microsecond
DELAY_FACTOR = 1.5  # of the time that the host needs to launch
SM_CLOCK_HZ = 2.0e9  # if torch does not tell it: above that of most data-centre GPUs
MAX_DELAY_S = 0.02
TRIES = 3  # of a reading for which the host was late; each waits twice as long
HOST_LAUNCHES = 3

Start = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """`readings_ms`: per launch, in order. `late`: readings in which the device may have waited for
    the host, for all tries. `dropped`: after the first round, whose reading is the only one.
    """

    readings_ms: tuple[float, ...]
    launches: int
    late: int = 0
    dropped: bool = False

    @property
    def median_ms(self) -> float:
        return median(self.readings_ms)


def by_turns(
    starts: Sequence[Start],
    device: torch.device,
    around: Sequence[AbstractContextManager[object]] | None = None,
) -> list[Timed]:
    """The times of launches that were started before, so that nothing is left to compile. Each
    reading of one is made within its context in `around`.

    A first round, apart, drops what is clearly slower. Then every other round runs backwards: a
    clock that rises or falls meanwhile favours none.
    """
    contexts = around or [nullcontext()] * len(starts)
    timers = [
        _Timer(start, device, context) for start, context in zip(starts, contexts, strict=True)
    ]
    found = [timer.first() for timer in timers]
    fastest_ms = min(one.median_ms for one in found)
    kept = [place for place, one in enumerate(found) if one.median_ms <= DROPPED_RATIO * fastest_ms]
    readings: dict[int, list[tuple[float, bool]]] = {place: [] for place in kept}
    for number in range(ROUNDS):
        for place in kept if number % 2 == 0 else reversed(kept):
            readings[place].append(timers[place].read(found[place].launches))
    return [
        Timed(
            readings_ms=tuple(ms for ms, _ in readings[place]),
            launches=one.launches,
            late=sum(late for _, late in readings[place]),
        )
        if place in readings
        else replace(one, launches=FIRST_LAUNCHES, dropped=True)
        for place, one in enumerate(found)
    ]


class _Timer:
    def __init__(
        self, start: Start, device: torch.device, context: AbstractContextManager[object]
    ) -> None:
        self.start, self.context = start, context
        khz = getattr(torch.cuda.get_device_properties(device), "clock_rate", None)
        self.clock_hz = float(khz) * 1e3 if khz else SM_CLOCK_HZ
        self.host_s = min(self._host_s(device) for _ in range(HOST_LAUNCHES))
        self.factor = DELAY_FACTOR

    def _host_s(self, device: torch.device) -> float:
        """How long the host is busy with a launch on an idle device."""
        torch.cuda.synchronize(device)
        begun = perf_counter()
        self.start()
        return perf_counter() - begun

    def first(self) -> Timed:
        """`launches`: those that the other readings need."""
        ms, late = self.read(FIRST_LAUNCHES)
        wanted = ceil(READING_MS / ms) if ms > 0 else MOST_LAUNCHES
        launches = max(FEWEST_LAUNCHES, min(MOST_LAUNCHES, wanted))
        return Timed(readings_ms=(ms,), launches=launches, late=int(late))

    def read(self, launches: int) -> tuple[float, bool]:
        """Milliseconds per launch, and whether the device may have waited for the host."""
        ms, late = self._read_once(launches)
        for _ in range(TRIES - 1):
            if not late:
                break
            self.factor *= 2
            ms, late = self._read_once(launches)
        return ms, late

    def _read_once(self, launches: int) -> tuple[float, bool]:
        with self.context:
            return self._reading(launches)

    def _reading(self, launches: int) -> tuple[float, bool]:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        delay_s = min(self.factor * launches * self.host_s, MAX_DELAY_S)
        torch.cuda._sleep(int(delay_s * self.clock_hz))
        begin.record()
        for _ in range(launches):
            self.start()
        end.record()
        late = begin.query()
        end.synchronize()
        return begin.elapsed_time(end) / launches, late
