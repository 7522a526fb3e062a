"""Which N to try next, and what the trials so far say: no process, no clock, no memory in here.

The boundary need not be sharp: allocators and address spaces differ from process to process. So
each end is tried twice, and what is reported is the interval outside of which all trials agree:
everything tried up to `low` fitted, everything from `high` on did not.
"""

from collections.abc import Callable
from math import isqrt

from ..cases import LONGEST
from ..record import LimitedBy, Status, Trial

FIRST = 64  # small enough for any backend; how long it takes tells how far the next one may go
# at most so many times the longest N that fitted: a time foreseen from much smaller N is worth
# little
GROWTH = 8
UNAIMED_GROWTH = 4  # the same where there is no prediction to go to
WIDTHS = tuple(
    0.01 * 2**power for power in range(7)
)  # of the prediction: how far from it to look, 1 % first, then further
# of N: closer than this the search ends; boundaries differ by half as much from process to process
RESOLUTION_RATIO = 0.003
SAFETY = 1.3  # times the time that is foreseen
# times the longest N that fitted: a smaller step is not worth a probe that takes all the time there
# is
WORTHWHILE = 1.05

MEMORY = (Status.OOM, Status.PREDICTED_OOM)


class Search:
    """`work(n)` is how much there is to compute at N = n, in any unit; `limit_s` how long a probe
    may take.
    """

    def __init__(self, predicted: int | None, work: Callable[[int], float], limit_s: float) -> None:
        self.predicted = predicted
        self.work = work
        self.limit_s = limit_s
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
        low = max((n for n in fits if n < min(fails, default=LONGEST + 1)), default=None)
        high = min((n for n in fails if n > max(fits, default=0)), default=None)
        return low, high

    @property
    def refused(self) -> Trial | None:
        """The trial that shows that there is no wall to look for: nothing fits, not for want of
        memory, or not even at N = 1.
        """
        if not self.trials or self.interval[0] is not None:
            return None
        last = self.trials[-1]
        return (
            None
            if last.status in MEMORY and last.seq_len > 1 and not self._contradicted()
            else last
        )

    @property
    def limited_by(self) -> LimitedBy | None:
        """What ended the search; None where nothing fits."""
        low, high = self.interval
        if low is None:
            return None
        if self._contradicted() or (high is not None and self._close(low, high)):
            memory = any(trial.status in MEMORY for trial in self.trials if trial.seq_len >= low)
            return "memory" if memory else "backend"
        return "length" if low == LONGEST else "time"

    def _fits(self) -> set[int]:
        return {trial.seq_len for trial in self.trials if trial.status is Status.OK}

    def _fails(self) -> set[int]:
        return {
            trial.seq_len
            for trial in self.trials
            if trial.status not in (Status.OK, Status.TIMEOUT)
        }

    def _close(self, low: int, high: int) -> bool:
        return high - low <= max(1, RESOLUTION_RATIO * high)

    def _contradicted(self) -> bool:
        fits, fails = self._fits(), self._fails()
        return bool(fits and fails) and max(fits) >= min(fails)

    # ---- what to do next -------------------------------------------------------------------------

    def next(self) -> int | None:
        """The N to try; None where the search is over."""
        if not self.trials:
            return FIRST if self.predicted is None else max(1, min(FIRST, self.predicted))
        low, high = self.interval
        over = self.refused is not None or self._contradicted() or low == LONGEST
        if over or any(trial.status is Status.TIMEOUT for trial in self.trials):
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
        """Just below the prediction, then just above it, then further and further away."""
        p = self.predicted
        aims = (
            []
            if p is None
            else [p - round(p * WIDTHS[0]), *(p + round(p * width) for width in WIDTHS)]
        )
        aim = next((n for n in aims if n > low), low * UNAIMED_GROWTH)
        return min(aim, low * GROWTH, LONGEST)

    def _between(self, low: int, high: int) -> int:
        """The middle; but from far below a prediction that failed, towards it in steps back from it
        that grow.
        """
        p = self.predicted or 0
        aim = next((n for n in (p - round(p * width) for width in WIDTHS) if n < high), 0)
        if aim - low > 2 * WIDTHS[0] * aim:
            return min(aim, low * GROWTH)
        return isqrt(low * high) if high > 2 * low else (low + high) // 2

    def _within_time(self, low: int, wanted: int) -> int | None:
        """The wanted N, or the largest one that the time limit allows; None where that is hardly
        further than what is known.
        """
        if self.foreseen_s(wanted) <= self.limit_s:
            return wanted
        shorter, longer = low, wanted
        while longer - shorter > 1:
            middle = (shorter + longer) // 2
            shorter, longer = (
                (middle, longer) if self.foreseen_s(middle) <= self.limit_s else (shorter, middle)
            )
        return shorter if shorter >= WORTHWHILE * low else None

    def foreseen_s(self, seq_len: int) -> float:
        """How long a probe would take, by the longest one that fitted."""
        known = max(
            (trial for trial in self.trials if trial.status is Status.OK),
            key=lambda trial: trial.seq_len,
        )
        return SAFETY * known.spent_s * self.work(seq_len) / self.work(known.seq_len)
