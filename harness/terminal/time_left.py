"""How long a run still takes: what is left of its forecast, by how long finished cases took."""

from collections import deque
from collections.abc import Callable
from time import monotonic

from ..cases.expected_time import Forecast, shared_s
from ..rows.record import Record

RECENT = 20  # finished cases
DOUBT_S = 5.0  # of predicted time that must have passed before the run's own speed counts half
OVERDUE_SHARE = 0.1  # of what is left: never nothing, however long a case takes


class TimeLeft:
    """Hears what ends; `seconds` may be asked at any time, and is cheap."""

    def __init__(self, forecast: Forecast, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._since_s = clock, clock()
        self._forecast, self._start_s = forecast, forecast.start_s
        self._left_s = {name: one.about_s for name, one in forecast.expected.items()}
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT)  # measured, predicted

    def finished(self, record: Record) -> None:
        predicted_s, spent_s = self._left_s.pop(record.id, None), record["spent_s"]
        self._since_s, self._start_s = self._clock(), 0.0  # workers are started by then
        if predicted_s is not None and spent_s is not None:
            self._recent.append((spent_s, predicted_s))

    def seconds(self) -> float:
        """Until the end, by what is known now."""
        measured_s = sum(measured for measured, _ in self._recent)
        predicted_s = sum(predicted for _, predicted in self._recent)
        pace = (measured_s + DOUBT_S) / (predicted_s + DOUBT_S)
        units, devices = self._forecast.units, self._forecast.devices
        left_s = self._start_s + pace * shared_s(self._left_s, units, devices)
        return max(OVERDUE_SHARE * left_s, left_s - (self._clock() - self._since_s))
