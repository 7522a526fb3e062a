"""Searches walls one at a time, by trials in fresh workers; a failure there is a result."""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import inf
from typing import Any

from ..cases.case import Wall
from ..cases.costs import work_flops
from ..process.worker_process import WorkerFailure
from ..rows.record import Record, Status, Trial
from .wall_search import GROWTH, Search
from .worker_pool import RunConfig, RunContext

LEAST_S = 4.0  # of a limited time, kept for each wall that is still to be searched: a first answer


class WallRunner:
    """From walls to their records."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.timeout_s = context.config.timeout_s
        self.wall: Wall | None = None
        self.left = 0  # walls that are not searched yet, this one included
        self.deadline = inf
        self.start_s = 0.0  # how long starting a worker takes, the longest so far
        self._predictions: dict[str, dict[str, Any]] = {}

    def predict(
        self, walls: Sequence[Wall], share: float = 1.0
    ) -> list[tuple[Wall, dict[str, Any]]]:
        """All walls before the first trial; the time for all of them begins. Raises Interrupted.

        `share`: of the run's time for walls, where other devices search the others.

        A wall whose worker is lost has no prediction here; its own row will say why.
        """
        for wall in walls:
            try:
                self._predictions[wall.id] = self._ask_prediction(wall)
            except WorkerFailure:
                self.context.pool.dismiss(0, wall.python)
        self.left = len(walls)
        budget_s = self.context.config.wall_budget_s
        self.deadline = inf if budget_s is None else time.monotonic() + share * budget_s
        known = self._predictions
        return [(wall, known[wall.id]) for wall in walls if wall.id in known]

    def in_order(self, walls: Sequence[Wall]) -> list[Wall]:
        """In which order to search: under a time limit first those whose prediction costs least.

        What one of them leaves serves the next, so that as many as possible are tried to the end.
        """
        return [*walls] if self.deadline == inf else sorted(walls, key=self._work)

    def _work(self, wall: Wall) -> float:
        predicted = self._predictions.get(wall.id, {}).get("predicted_seq_len")
        return work_flops(wall.at(predicted).problem) if predicted else inf

    def record(self, wall: Wall) -> Record:
        """The wall's row. Raises Interrupted; `unfinished` has the row then."""
        self.wall = wall
        self.prediction: dict[str, Any] = {}
        self.search = Search(None, lambda _: 1.0, self.timeout_s)
        self.log_tail: str | None = None
        self.started_utc = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.started = time.monotonic()
        try:
            self._search(wall)
        except WorkerFailure as failure:  # not in a trial: no worker could be started
            log_tail = self.context.pool.dismiss(0, wall.python) or failure.log_tail
            return self._record(wall, failure.status, failure.reason, log_tail)
        finally:
            self.left = max(0, self.left - 1)
        refused = self.search.refused
        if refused is None:
            return self._record(wall, Status.OK)
        reason = refused.reason
        if refused.status in (Status.OOM, Status.PREDICTED_OOM):
            reason = f"nothing fits, not even N = {refused.seq_len}: {reason}"
        return self._record(wall, refused.status, reason, self.log_tail)

    def unfinished(self, status: Status, reason: str) -> Iterator[Record]:
        """The record of the wall that was being searched when the run was stopped."""
        if self.wall is not None:
            yield self._record(self.wall, status, reason)

    def _search(self, wall: Wall) -> None:
        pool, running = self.context.pool, self.context.running
        known = self._predictions.get(wall.id)
        self.prediction = self._ask_prediction(wall) if known is None else known
        self.search = Search(
            self.prediction["predicted_seq_len"],
            lambda n: work_flops(wall.at(n).problem),
            self.timeout_s,
            self.context.config.wall_tolerance_ratio,
            bound=self.prediction["predicted_source"] == "nearest",
        )
        now, others = time.monotonic(), max(0, self.left - 1)
        equal_share = (self.deadline - now) / (others + 1)
        self.until = max(now + equal_share, self.deadline - others * LEAST_S)
        while (seq_len := self._next()) is not None:
            running(wall.id, f"N = {seq_len}")
            if not self._may_reuse_worker(seq_len):
                pool.dismiss(0)
            self.search.add(self._try(wall, seq_len))
        pool.dismiss(0)

    def _ask_prediction(self, wall: Wall) -> dict[str, Any]:
        self.context.running(wall.id, "prediction")
        request = {"op": "predict", "wall": wall.fields()}
        return self.context.pool.ask(request, "predicted", wall.python)

    def _next(self) -> int | None:
        """The N to try within the wall's share of the time that is left; None: the search is over.

        There is always time until something fits, so that a wall has an answer.
        """
        search, left_s = self.search, self.until - time.monotonic()
        if search.interval[0] is None:
            return search.next()
        search.limit_s = min(self.timeout_s, left_s)
        seq_len = search.next() if left_s > 0 else None
        if seq_len is None or self._may_reuse_worker(seq_len):
            return seq_len
        left_s -= self.start_s
        search.limit_s = min(self.timeout_s, left_s)
        return search.next() if left_s > 0 else None

    def _may_reuse_worker(self, seq_len: int) -> bool:
        """Whether the worker's earlier trials are small compared with the next one.

        What larger ones leave in the heap would move the wall.
        """
        last = self.search.trials[-1] if self.search.trials else None
        return last is None or (last.status is Status.OK and seq_len >= GROWTH * last.seq_len)

    def _try(self, wall: Wall, seq_len: int) -> Trial:
        pool, since = self.context.pool, time.monotonic()
        pool.worker(0, wall.python)  # a worker that cannot be started says nothing about this N
        self.start_s = max(self.start_s, time.monotonic() - since)
        since = time.monotonic()
        try:
            request = {"op": "trial", "cases": [wall.at(seq_len).fields()]}
            answer = pool.ask(request, "tried", wall.python)
            self.log_tail = answer["log_tail"]
            status, reason, spent_s = Status(answer["status"]), answer["reason"], answer["spent_s"]
        except WorkerFailure as failure:
            status, reason, spent_s = failure.status, failure.reason, time.monotonic() - since
            if status is Status.TIMEOUT:
                hint = "raise it with --timeout, or give less memory"
                reason = f"more than {self.timeout_s:g} s; {hint}"
            self.log_tail = pool.dismiss(0, wall.python) or failure.log_tail
        return Trial(seq_len=seq_len, status=status, reason=reason, spent_s=spent_s)

    def _record(
        self, wall: Wall, status: Status, reason: str = "", log_tail: str | None = None
    ) -> Record:
        self.wall = None
        low, high = self.search.interval
        values = {
            **known_of_wall(self.context.config),
            **self.prediction,
            "log_tail": log_tail,
            "seq_len_low": low,
            "seq_len_high": high,
            "limited_by": self.search.limited_by if status is Status.OK else None,
            "probes": [trial.fields() for trial in self.search.trials],
            "started_utc": self.started_utc,
            "spent_s": time.monotonic() - self.started,
        }
        return self.context.record(wall, status, reason, **values)


def known_of_wall(config: RunConfig) -> dict[str, Any]:
    """The values of a wall that was not searched."""
    reason = "the search ended before the prediction"
    return {"memory_bytes": config.budget_bytes, "predicted_reason": reason}
