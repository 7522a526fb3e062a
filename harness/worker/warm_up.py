"""Call a case until its times are stationary."""

from collections.abc import Callable
from statistics import median

from ..measure.clock import Between, Clock, nothing, now_s
from ..rows.plans import CALLS_TO_TELL, WARM_UP_S
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
