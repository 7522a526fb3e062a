"""Looks for one wall after the other: probes in workers that nothing else has used, whatever
happens there a fact about that probe.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from ..cases import Wall
from ..costs import work_flops
from ..process.worker_process import Fault
from ..record import Status, Trial, WallRecord
from .wall_search import GROWTH, Search
from .worker_pool import Crew, Terms


class Hunt:
    """From walls to their records. `running` is told which N is being tried."""

    def __init__(
        self,
        terms: Terms,
        crew: Crew,
        attempts: dict[str, int],
        running: Callable[[str, str], None],
    ) -> None:
        self.terms = terms
        self.crew = crew
        self.attempts = attempts
        self.running = running
        self.wall: Wall | None = None
        self._begin(None)

    def record(self, wall: Wall) -> WallRecord:
        """The wall's row. Raises Interrupted; `unfinished` then has the row."""
        self._begin(wall)
        try:
            self._look(wall)
        except Fault as fault:  # not in a probe: no worker could be had
            return self._record(
                fault.status, fault.reason, self.crew.dismiss(0, wall.python) or fault.log_tail
            )
        refused = self.search.refused
        if refused is not None:
            return self._record(refused.status, self._why(refused), self.log_tail)
        return self._record(Status.OK, "", None)

    def unfinished(self, status: Status, reason: str) -> Iterator[WallRecord]:
        """The record of the wall that was under way when the run was stopped."""
        if self.wall is not None:
            yield self._record(status, reason, None)

    # ---- one wall --------------------------------------------------------------------------------

    def _begin(self, wall: Wall | None) -> None:
        self.wall = wall
        self.foreseen: dict[str, Any] = {}
        self.search = Search(None, lambda _: 1.0, self.terms.timeout_s)
        self.log_tail: str | None = None
        self.started_utc = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.started = time.monotonic()

    def _look(self, wall: Wall) -> None:
        self.running(wall.id, "prediction")
        answer = self.crew.ask({"op": "predict", "wall": wall.fields()}, "predicted", wall.python)
        self.foreseen = answer
        self.search = Search(
            answer["predicted_seq_len"],
            lambda n: work_flops(wall.at(n).problem),
            self.terms.timeout_s,
        )
        while (seq_len := self.search.next()) is not None:
            self.running(wall.id, f"N = {seq_len}")
            if not self._small(self.search.trials, seq_len):
                self.crew.dismiss(0)
            self.search.add(self._try(wall, seq_len))
        self.crew.dismiss(0)

    def _small(self, trials: list[Trial], seq_len: int) -> bool:
        """Whether all that this worker has done is small beside the next probe: what earlier ones
        leave in the heap moves the wall.
        """
        return not trials or (
            trials[-1].status is Status.OK and seq_len >= GROWTH * trials[-1].seq_len
        )

    def _try(self, wall: Wall, seq_len: int) -> Trial:
        self.crew.worker(
            0, wall.python
        )  # where none can be started, that says nothing about this N
        since = time.monotonic()
        try:
            answer = self.crew.ask(
                {"op": "probe", "cases": [wall.at(seq_len).fields()]}, "probed", wall.python
            )
            self.log_tail = answer["log_tail"]
            status, reason, spent_s = Status(answer["status"]), answer["reason"], answer["spent_s"]
        except Fault as fault:
            status, reason, spent_s = fault.status, fault.reason, time.monotonic() - since
            if status is Status.TIMEOUT:
                reason = (
                    f"more than {self.terms.timeout_s:g} s; raise it with --timeout, or give less"
                    " memory"
                )
            self.log_tail = self.crew.dismiss(0, wall.python) or fault.log_tail
        return Trial(seq_len=seq_len, status=status, reason=reason, spent_s=spent_s)

    def _why(self, refused: Trial) -> str:
        if refused.status in (Status.OOM, Status.PREDICTED_OOM):
            return f"nothing fits, not even N = {refused.seq_len}: {refused.reason}"
        return refused.reason

    def _record(self, status: Status, reason: str, log_tail: str | None) -> WallRecord:
        wall, self.wall = self.wall, None
        assert wall is not None
        low, high = self.search.interval
        return WallRecord(
            wall=wall,
            device=self.terms.device,
            attempt=self.attempts.get(wall.id, 0) + 1,
            status=status,
            reason=reason,
            log_tail=log_tail,
            seq_len_low=low,
            seq_len_high=high,
            limited_by=self.search.limited_by if status is Status.OK else None,
            memory_bytes=self.terms.budget_bytes,
            probes=tuple(self.search.trials),
            started_utc=self.started_utc,
            spent_s=time.monotonic() - self.started,
            **self.foreseen,
        )
