"""How long a run still takes: what is left of its forecast, at the pace of this run so far."""

from collections.abc import Callable
from time import monotonic

from ..cases.expected_time import END_S, Forecast, shared_s

CHECKED_SHARE = 0.25  # of a case's time: its first step
DOUBT_S, DOUBT_SHARE = 5.0, 0.1
"""Of predicted time, at least, that must have passed before the run's own pace counts half."""
OVERDUE_SHARE = 0.1  # of what is left: never nothing, however long a step takes


class TimeLeft:
    """Hears what was done; `seconds` may be asked at any time, and is cheap."""

    def __init__(self, forecast: Forecast, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._forecast = clock, forecast
        self._begun_s = self._since_s = clock()
        self._left = {name: one.about_s for name, one in forecast.expected.items()}
        self._whole_s = self._shared()
        self._walls_end_s: float | None = None

    def steps(self, name: str, done: int) -> None:
        """Of what is measured, as in Listener."""
        self._since_s = self._clock()
        if (one := self._forecast.expected.get(name)) is not None:
            first = CHECKED_SHARE if one.steps > 1 else 1.0
            share = first + (1 - first) * (done - 1) / max(1, one.steps - 1)
            self._left[name] = one.about_s * max(0.0, 1 - share)

    def finished(self, name: str) -> None:
        self._since_s = self._clock()
        self._left.pop(name, None)

    def walls_begin(self) -> None:
        """Their time, if it is limited, begins now; all else has been measured."""
        if self._forecast.walls_s is not None:
            self._walls_end_s = self._clock() + self._forecast.walls_s

    def seconds(self) -> float:
        """Until the end, by what is known now."""
        now, start_s = self._clock(), self._forecast.start_s
        if self._walls_end_s is not None:
            return max(0.0, self._walls_end_s - now) + END_S
        left_s = self._shared()
        spent_s, done_s = self._since_s - self._begun_s, self._whole_s - left_s
        done_s, left_s = (done_s + start_s, left_s) if done_s else (0.0, left_s + start_s)
        doubt_s = max(DOUBT_S, DOUBT_SHARE * self._whole_s)
        pace = (spent_s + doubt_s) / (done_s + doubt_s)
        left_s = pace * left_s + END_S
        return max(OVERDUE_SHARE * left_s, left_s - (now - self._since_s))

    @property
    def over_s(self) -> float:
        """By how much the first estimate is exceeded; negative before."""
        return self._clock() - self._begun_s - self._forecast.about_s

    def _shared(self) -> float:
        return shared_s(self._left, self._forecast.units, self._forecast.devices)
