"""Searches walls, by trials in fresh workers; a failure there is a result."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from ..cases.case import Wall
from ..cases.costs import work_flops
from ..process.worker_process import WorkerFailure
from ..rows.record import Record, Status
from ..rows.values import Trial
from .spec import RunSpec
from .wall_search import GROWTH, Search
from .worker_pool import FIRST, Runtime, utc_now


@dataclass(slots=True, eq=False)
class WallState:
    """A wall that is searched for, over all its turns."""

    wall: Wall
    search: Search
    prediction: dict[str, Any] = field(default_factory=dict)
    log_tail: str | None = None
    started_utc: str = ""
    spent_s: float = 0.0

    @property
    def work(self) -> float:
        """FLOPs of the predicted length."""
        predicted = self.prediction.get("predicted_seq_len")
        return work_flops(self.wall.at(predicted).problem) if predicted else inf

    def may_reuse_worker(self, seq_len: int) -> bool:
        """Whether the worker's earlier trials are small compared with the next one.

        What larger ones leave in the heap would move the wall.
        """
        last = self.search.trials[-1] if self.search.trials else None
        return last is None or (last.status == Status.OK and seq_len >= GROWTH * last.seq_len)


class WallRunner:
    """From walls to their records."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.timeout_s = runtime.spec.how.limits.timeout_s
        self.deadline = self.until = inf  # of all walls, of the turn
        self.start_s = 0.0  # how long starting a worker takes, the longest so far
        self._states: list[WallState] = []  # without a record

    def _predict_all(self, share: float) -> None:
        """All walls before the first trial; then the time for all of them begins.

        A wall whose worker is lost has no prediction here; its own row will say why.
        """
        since = time.monotonic()
        for one in self._states:
            try:
                self._predict(one)
            except WorkerFailure:
                self.runtime.pool.dismiss()
        budget_s = self.runtime.spec.wall_budget_s
        self.deadline = inf if budget_s is None else time.monotonic() + share * budget_s
        known = [(one.wall.id, one.prediction) for one in self._states if one.prediction]
        self.runtime.listener.predicted(known, time.monotonic() - since)

    def records(self, walls: Sequence[Wall], share: float = 1.0) -> Iterator[Record]:
        """The rows, each as soon as its search is over. Raises Interrupted; `unfinished` has the
        rows of the others then. `share`: of the run's time for walls, where other devices search
        the others.

        Under a time limit walls take turns, first those whose prediction costs least. A turn is an
        equal share of the time that is left, and what one leaves serves the others, in the same
        round and the next.
        """
        self._states = [
            WallState(wall, Search(None, lambda _: 1.0, self.timeout_s)) for wall in walls
        ]
        if walls:
            self._predict_all(share)
        if self.deadline < inf:
            self._states.sort(key=lambda one: one.work)
        tried = True
        while tried:
            tried, waiting = False, [*self._states]
            for number, one in enumerate(waiting):
                now = time.monotonic()
                self.until = now + (self.deadline - now) / (len(waiting) - number)
                before = len(one.search.trials)
                over = self._turn(one)
                one.spent_s += time.monotonic() - now
                tried = tried or len(one.search.trials) > before
                if over is not None:
                    self._states.remove(one)
                    yield over
        yield from self.unfinished(Status.OK, "")  # there is no time for another trial

    def unfinished(self, status: Status, reason: str) -> Iterator[Record]:
        """The records of walls whose search has begun, as when the run is stopped."""
        begun = [one for one in self._states if one.started_utc]
        self._states = []
        for one in begun:
            yield self._record(one, status, reason)

    def _turn(self, one: WallState) -> Record | None:
        """Trials until the turn's time is up; the record once the search is over."""
        pool, wall = self.runtime.pool, one.wall
        try:
            if not one.started_utc:
                self._begin(one)
            while (seq_len := self._next(one)) is not None:
                self.runtime.listener.running(wall.id, f"N = {seq_len}")
                if not one.may_reuse_worker(seq_len):
                    pool.dismiss()
                one.search.add(self._try(one, seq_len))
                self.runtime.listener.steps(wall.id, len(one.search.trials))
            pool.dismiss()
        except WorkerFailure as failure:  # not in a trial: no worker could be started
            one.log_tail = pool.dismiss() or failure.log_tail
            return self._record(one, failure.status, failure.reason)
        refused = one.search.refused
        if refused is None:
            one.search.limit_s = self.timeout_s
            return None if one.search.next() is not None else self._record(one, Status.OK)
        reason = refused.reason
        if refused.status in (Status.OOM, Status.PREDICTED_OOM):
            reason = f"nothing fits, not even N = {refused.seq_len}: {reason}"
        return self._record(one, Status(refused.status), reason)

    def _begin(self, one: WallState) -> None:
        one.started_utc = utc_now()
        wall = one.wall
        if not one.prediction:
            self._predict(one)
        one.search = Search(
            one.prediction["predicted_seq_len"],
            lambda n: work_flops(wall.at(n).problem),
            self.timeout_s,
            self.runtime.spec.how.limits.wall_tolerance_ratio,
            bound=one.prediction["predicted_source"] == "nearest",
        )

    def _predict(self, one: WallState) -> None:
        self.runtime.listener.running(one.wall.id, "prediction")
        reply = self.runtime.pool.ask("predict", wall=one.wall.fields())
        one.prediction = reply.model_dump(exclude={"op"}, exclude_unset=True)

    def _next(self, one: WallState) -> int | None:
        """The N to try within the turn; None: not now, or the search is over.

        There is always time until something fits, so that a wall has an answer.
        """
        search, left_s = one.search, self.until - time.monotonic()
        if search.interval[0] is None:
            return search.next()
        search.limit_s = min(self.timeout_s, left_s)
        seq_len = search.next() if left_s > 0 else None
        if seq_len is None or one.may_reuse_worker(seq_len):
            return seq_len
        left_s -= self.start_s
        search.limit_s = min(self.timeout_s, left_s)
        return search.next() if left_s > 0 else None

    def _try(self, one: WallState, seq_len: int) -> Trial:
        pool, wall, since = self.runtime.pool, one.wall, time.monotonic()
        pool.worker(FIRST)  # a worker that cannot be started says nothing about this N
        self.start_s = max(self.start_s, time.monotonic() - since)
        since = time.monotonic()
        try:
            found = pool.ask("trial", case=wall.at(seq_len).fields())
            one.log_tail = found.log_tail
            status, reason, spent_s = Status(found.status), found.reason, found.spent_s
        except WorkerFailure as failure:
            status, reason, spent_s = failure.status, failure.reason, time.monotonic() - since
            if status is Status.TIMEOUT:
                hint = "raise the limit with --timeout, or give less memory"
                reason = f"it took more than {self.timeout_s:g} s; {hint}"
            one.log_tail = pool.dismiss() or failure.log_tail
        return Trial(seq_len=seq_len, status=status, reason=reason, spent_s=spent_s)

    def _record(self, one: WallState, status: Status, reason: str = "") -> Record:
        low, high = one.search.interval
        ok = status is Status.OK
        values = {
            **known_of_wall(self.runtime.spec),
            **one.prediction,
            "log_tail": None if ok else one.log_tail,
            "seq_len_low": low,
            "seq_len_high": high,
            "limited_by": one.search.limited_by if ok else None,
            "probes": [trial.model_dump() for trial in one.search.trials],
            "started_utc": one.started_utc,
            "spent_s": one.spent_s,
        }
        return self.runtime.record(one.wall, status, reason, **values)


def known_of_wall(spec: RunSpec) -> dict[str, Any]:
    """The values of a wall that was not searched."""
    reason = "the search ended before the prediction"
    return {"memory_bytes": spec.memory_bytes, "predicted_reason": reason}
