"""How long a run still takes: its forecast, corrected by what was measured so far."""

from collections.abc import Callable
from statistics import median
from time import monotonic

from ..cases.expected_time import Expected, Forecast, shared_s
from ..rows.record import Record

DOUBT_S = 5.0  # of predicted time that must have passed before the run's own speed counts half
DOUBT_CALL_S = 0.2  # the same of one call of each case: short calls say little about long ones
OVERDUE_SHARE = 0.1  # of its prediction: what is still left of a case that takes longer


class TimeLeft:
    """Hears what a run does, as a listener; `seconds` may be asked at any time, and is cheap.

    How long a call took, per backend and dtype, scales the calls that are left; how long cases took
    in all scales everything.
    """

    def __init__(self, forecast: Forecast, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._left = dict(forecast.expected)
        self._steady_s: dict[tuple[str, str], float] = {}
        self._calls_s: dict[tuple[str, str], float] = {}
        # by backend and dtype, of one call of each finished case: measured and predicted seconds
        self._measured_s: dict[tuple[str, str], float] = {}
        self._predicted_s: dict[tuple[str, str], float] = {}
        for one in self._left.values():
            self._add(one, 1)
        self._spent_s: dict[str, float] = {}
        self._current, self._since = "", clock()
        self._uncharged_s, self._start_s = 0.0, forecast.start_s
        self._done_predicted_s = self._done_spent_s = 0.0

    def running(self, what: str) -> None:
        self._charge()
        self._current = what

    def finished(self, record: Record) -> None:
        self._charge()
        one = self._left.pop(record.id, None)
        spent_s = self._spent_s.pop(record.id, 0.0) + self._uncharged_s
        self._uncharged_s = 0.0
        if one is None:
            return
        self._start_s = 0.0  # workers are started by then
        self._add(one, -1)
        key = (one.backend, one.dtype)
        blocks = record["block_ms"] if record.kind == "latency" else None
        if blocks and one.call_s:
            measured_ms = median(median(block) for process in blocks for block in process if block)
            self._measured_s[key] = self._measured_s.get(key, 0.0) + measured_ms / 1e3
            self._predicted_s[key] = self._predicted_s.get(key, 0.0) + one.call_s
        self._done_predicted_s += self._corrected(key, one.steady_s, one.about_s - one.steady_s)
        self._done_spent_s += spent_s

    def seconds(self) -> float:
        """Until the end, by what is known now."""
        left = sum(
            self._corrected(key, steady_s, self._calls_s[key])
            for key, steady_s in self._steady_s.items()
        )
        spent = dict(self._spent_s)
        spent[self._current] = spent.get(self._current, 0.0) + self._clock() - self._since
        under_way = 0.0
        for name in spent.keys() & self._left.keys():
            one = self._left[name]
            calls_s = one.about_s - one.steady_s
            due_s = self._corrected((one.backend, one.dtype), one.steady_s, calls_s)
            under_way += min(spent[name] / self._pace, (1 - OVERDUE_SHARE) * due_s)
        return max(0.0, left - under_way) * self._pace + self._start_s

    @property
    def _pace(self) -> float:
        """Seconds that passed for each that was predicted."""
        return (self._done_spent_s + DOUBT_S) / (self._done_predicted_s + DOUBT_S)

    def _corrected(self, key: tuple[str, str], steady_s: float, calls_s: float) -> float:
        measured_s, predicted_s = self._measured_s.get(key, 0.0), self._predicted_s.get(key, 0.0)
        factor = (measured_s + DOUBT_CALL_S) / (predicted_s + DOUBT_CALL_S)
        return steady_s + factor * calls_s

    def _add(self, one: Expected, sign: int) -> None:
        key = (one.backend, one.dtype)
        self._steady_s[key] = self._steady_s.get(key, 0.0) + sign * one.steady_s
        calls_s = sign * (one.about_s - one.steady_s)
        self._calls_s[key] = self._calls_s.get(key, 0.0) + calls_s

    def _charge(self) -> None:
        """Time goes to what ran; that of our own work to the case that ends next."""
        now = self._clock()
        if self._current in self._left:
            spent_s = self._spent_s.get(self._current, 0.0)
            self._spent_s[self._current] = spent_s + now - self._since
        else:
            self._uncharged_s += now - self._since
        self._since = now


class TimeLeftOnDevices:
    """The same of a run on several devices, which do several things at a time.

    How long finished cases took, by their rows, scales what is left.
    """

    def __init__(self, forecast: Forecast) -> None:
        self._forecast = forecast
        self._left_s = {name: one.about_s for name, one in forecast.expected.items()}
        self._start_s = forecast.start_s
        self._predicted_s = self._spent_s = 0.0

    def running(self, what: str) -> None:
        """Says nothing about how much of it is done."""

    def finished(self, record: Record) -> None:
        predicted_s, spent_s = self._left_s.pop(record.id, None), record["spent_s"]
        self._start_s = 0.0
        if predicted_s is not None and spent_s is not None:
            self._predicted_s += predicted_s
            self._spent_s += spent_s

    def seconds(self) -> float:
        """Until the end, by what is known now."""
        pace = (self._spent_s + DOUBT_S) / (self._predicted_s + DOUBT_S)
        forecast = self._forecast
        return self._start_s + pace * shared_s(self._left_s, forecast.units, forecast.devices)
