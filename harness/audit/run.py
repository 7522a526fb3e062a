"""An audit from its first kernel to its last: compiled by children, one row per kernel whatever
happens, and an orderly end.
"""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from ..errors import EnvironmentUnmet
from ..process.signals import Signals
from ..process.worker_process import Fault, Interrupted
from ..record import Status
from ..store import LOGS, Store
from .pool import Began, Done, Pool, Selection
from .record import KernelRecord
from .verdict import Row, Verdict, verdicts

NAME = "kernels"
QUESTION = (
    "What did the compilers make of the tuned Triton kernels, and how many blocks of them does an"
    " SM hold?"
)


class Listener(Protocol):
    """Is told how an audit goes; prints, or keeps quiet."""

    def begin(
        self, path: Path, planned: Mapping[str, int], done: int, remarks: Sequence[str]
    ) -> None: ...

    def running(self, what: str, phase: str) -> None: ...

    def finished(self, record: KernelRecord) -> None: ...


@dataclass(slots=True, kw_only=True)
class Audited:
    """How an audit ended. `signal` is the number of the signal that ended it early."""

    path: Path
    rows: list[Row] = field(default_factory=list)
    signal: int | None = None

    @property
    def verdicts(self) -> list[Verdict]:
        return verdicts(self.rows)

    @property
    def exit_code(self) -> int:
        if self.signal is not None:
            return 128 + self.signal
        return 0 if all(verdict.is_good for verdict in self.verdicts) else 1


def audit(selection: Selection, root: Path, command: Sequence[str], listener: Listener) -> Audited:
    """Compile what is selected into a new run folder. Raises Refusal."""
    if find_spec("triton") is None:
        raise EnvironmentUnmet(
            "kernels audit: triton is not installed; it brings the compilers: pip install"
            " 'attnbench[triton]'"
        )
    try:
        pool = Pool(selection)
    except Fault as fault:
        raise EnvironmentUnmet(
            f"no compiler could be started: {fault.reason}\n{fault.log_tail or ''}".rstrip()
        ) from None
    with pool:
        store = Store.create(root, NAME, _meta(selection, pool, command))
        pool.logs = store.path / LOGS
        try:
            return _compile(pool, store, listener)
        finally:
            store.close()


def _meta(selection: Selection, pool: Pool, command: Sequence[str]) -> dict[str, Any]:
    return {
        "attnbench": pool.environment["attnbench"],
        "started_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": list(command),
        "scenario": {
            "name": NAME,
            "question": QUESTION,
            "dtypes": list(selection.dtypes),
            "kernels": list(selection.kernels),
        },
        "device": "cpu",
        "memory_bytes": None,
        "seed": None,
        "environment": pool.environment,
        "calibration": None,
        "cases": [],
        "walls": [],
        "studies": [],
        "kernels": pool.kernels,
    }


def _compile(pool: Pool, store: Store, listener: Listener) -> Audited:
    audited = Audited(path=store.path)
    left = {planned["case"]: planned for planned in pool.kernels}

    def keep(record: KernelRecord) -> None:
        row = record.row()
        store.append([row])
        audited.rows.append(row)
        listener.finished(record)

    listener.begin(store.path, {"kernels": len(left)}, 0, [])
    with Signals(
        advice="what was compiled stands in Triton's cache, so the next audit is faster"
    ) as signals:
        try:
            for said in pool.results(list(left), signals.check):
                if isinstance(said, Began):
                    listener.running(said.case, "")
                else:
                    keep(_record(left.pop(said.case), said))
        except Interrupted:
            audited.signal = signals.received
            name = signal.Signals(signals.received or signal.SIGINT).name
            for planned in left.values():
                keep(
                    KernelRecord(
                        planned=planned,
                        status=Status.INTERRUPTED,
                        reason=f"not compiled: stopped by {name}",
                    )
                )
    order = {planned["case"]: place for place, planned in enumerate(pool.kernels)}
    audited.rows.sort(key=lambda row: order[row["case"]])
    return audited


def _record(planned: Mapping[str, Any], done: Done) -> KernelRecord:
    told = {"status", "reason", "log_tail"}
    return KernelRecord(
        planned=planned,
        status=Status(done.answer["status"]),
        reason=done.answer["reason"],
        log_tail=done.answer["log_tail"],
        found={name: value for name, value in done.answer.items() if name not in told},
        started_utc=done.started_utc,
        spent_s=done.spent_s,
    )
