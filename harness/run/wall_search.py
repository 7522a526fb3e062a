"""Which length to try next, and what the trials so far say: no process, clock or memory in here.

The boundary need not be sharp: allocators and address spaces differ between processes. So each end
is tried twice, and the result is the interval outside of which all trials agree: everything up to
`low` fitted, everything from `high` on failed.
"""

from collections.abc import Callable
from math import isqrt
from typing import Literal

from ..cases.case import MAX_SEQ_LEN
from ..rows.record import Status
from ..rows.values import Trial

FIRST = 64  # fits any backend; how long it takes says how far the next trial may go
# of the longest N that fitted: a time extrapolated from much smaller N is worth little
GROWTH = 8
UNAIMED_GROWTH = 4  # the same without a prediction to aim at
CLOSEST_RATIO = 0.01  # of the prediction: how far from it to look first, then twice as far
WIDENINGS = 7
BEYOND_BOUND = 2.1  # times a bound that is too low: half the bytes, as bf16 by fp32's formula, is 2
# of N: the search ends at this distance; boundaries differ by half as much between processes
TOLERANCE_RATIO = 0.003
SAFETY = 1.3  # times the extrapolated time
WORTHWHILE = 1.05  # times the longest N that fitted: a smaller step is not worth a long trial

LimitedBy = Literal["memory", "time", "length", "backend"]
MEMORY = (Status.OOM, Status.PREDICTED_OOM)


class Search:
    """`work(n)`: how much there is to compute at N = n, in any unit. `limit_s`: of the next trial,
    which the caller may lower as time passes. `tolerance_ratio`: how close is close enough.
    `bound`: at least what is predicted fits, and perhaps much more.
    """

    def __init__(
        self,
        predicted: int | None,
        work: Callable[[int], float],
        limit_s: float,
        tolerance_ratio: float = TOLERANCE_RATIO,
        *,
        bound: bool = False,
    ) -> None:
        self.predicted = predicted
        self.work = work
        self.limit_s = limit_s
        self.tolerance_ratio = tolerance_ratio
        self.bound = bound
        closest = max(CLOSEST_RATIO, tolerance_ratio / 2)
        self.widths = tuple(closest * 2**power for power in range(WIDENINGS))
        self.trials: list[Trial] = []

    def add(self, trial: Trial) -> None:
        self.trials.append(trial)

    # ---- what is known ---------------------------------------------------------------------------

    @property
    def interval(self) -> tuple[int | None, int | None]:
        """The largest N that fitted with no failure at or below it, and the smallest that failed
        with no fit at or above it.
        """
        fits, fails = self._fits(), self._fails()
        low = max((n for n in fits if n < min(fails, default=MAX_SEQ_LEN + 1)), default=None)
        high = min((n for n in fails if n > max(fits, default=0)), default=None)
        return low, high

    @property
    def refused(self) -> Trial | None:
        """The trial that shows that there is no wall to find.

        Nothing fits, and not for lack of memory, or not even at N = 1.
        """
        if not self.trials or self.interval[0] is not None:
            return None
        last = self.trials[-1]
        shorter_may_fit = last.status in MEMORY and last.seq_len > 1
        return None if shorter_may_fit and not self._contradicted() else last

    @property
    def limited_by(self) -> LimitedBy | None:
        """What ended the search; None if nothing fits."""
        low, high = self.interval
        if low is None:
            return None
        if self._contradicted() or (high is not None and self._close(low, high)):
            statuses = {trial.status for trial in self.trials if trial.seq_len >= low}
            return "memory" if statuses & set(MEMORY) else "backend"
        return "length" if low == MAX_SEQ_LEN else "time"

    def _fits(self) -> set[int]:
        return {trial.seq_len for trial in self.trials if trial.status == Status.OK}

    def _fails(self) -> set[int]:
        fitted = (Status.OK, Status.TIMEOUT)
        return {trial.seq_len for trial in self.trials if trial.status not in fitted}

    def _close(self, low: int, high: int) -> bool:
        return high - low <= max(1, self.tolerance_ratio * high)

    def _contradicted(self) -> bool:
        fits, fails = self._fits(), self._fails()
        return bool(fits and fails) and max(fits) >= min(fails)

    # ---- what to try next ------------------------------------------------------------------------

    def next(self) -> int | None:
        """The N to try; None if the search is over."""
        if not self.trials:
            return FIRST if self.predicted is None else max(1, min(FIRST, self.predicted))
        low, high = self.interval
        over = self.refused is not None or self._contradicted() or low == MAX_SEQ_LEN
        if over or any(trial.status == Status.TIMEOUT for trial in self.trials):
            return None
        if low is None:
            return max(1, min(self._fails()) // GROWTH)
        if high is None:
            return self._within_time(low, self._above(low))
        if self._close(low, high):
            tried = [trial.seq_len for trial in self.trials]
            return next((n for n in (low, high) if tried.count(n) == 1), None)
        return self._within_time(low, self._between(low, high))

    def _above(self, low: int) -> int:
        """Just below the prediction, just above it, then further and further away; from a bound
        that is not close, soon so far that it probably fails.
        """
        p = self.predicted
        widths = (*self.widths[:2], BEYOND_BOUND - 1) if self.bound else self.widths
        aims = [] if p is None else [p - round(p * self.widths[0])]
        aims += [] if p is None else [p + round(p * width) for width in widths]
        aim = next((n for n in aims if n > low), low * UNAIMED_GROWTH)
        return min(aim, low * GROWTH, MAX_SEQ_LEN)

    def _between(self, low: int, high: int) -> int:
        """The middle; far below a prediction that failed, growing steps back from it."""
        p = self.predicted or 0
        aim = next((n for n in (p - round(p * width) for width in self.widths) if n < high), 0)
        if aim - low > 2 * self.widths[0] * aim:
            return min(aim, low * GROWTH)
        return isqrt(low * high) if high > 2 * low else (low + high) // 2

    def _within_time(self, low: int, aim: int) -> int | None:
        """The aim, or the largest N below it that the time limit allows.

        None if that is hardly further than what is known.
        """
        if self.expected_s(aim) <= self.limit_s:
            return aim
        shorter, longer = low, aim
        while longer - shorter > 1:
            middle = (shorter + longer) // 2
            if self.expected_s(middle) <= self.limit_s:
                shorter = middle
            else:
                longer = middle
        return shorter if shorter >= WORTHWHILE * low else None

    def expected_s(self, seq_len: int) -> float:
        """How long a trial would take, extrapolated from the longest one that fitted."""
        fitted = (trial for trial in self.trials if trial.status == Status.OK)
        known = max(fitted, key=lambda trial: trial.seq_len)
        return SAFETY * known.spent_s * self.work(seq_len) / self.work(known.seq_len)
