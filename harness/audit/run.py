"""An audit from begin to end: one row per kernel, whatever happens."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..files.errors import EnvironmentUnmet
from ..process.signals import Signals
from ..process.worker_process import Interrupted, WorkerFailure, signal_name
from ..rows.record import Record, Status
from ..run.listener import Begun, Listener
from ..store.run_store import LOGS, Store
from .kernel_row import kernel_record
from .pool import CompilerPool, KernelSelection, Started
from .verdict import CapabilityVerdict, Row, verdicts

NAME = "kernels"
QUESTION = (
    "What did the compilers make of the tuned Triton kernels, and how many blocks of them does an"
    " SM hold?"
)


@dataclass(slots=True, kw_only=True)
class AuditResult:
    """How an audit ended. `signal`: the number of the signal that ended it early."""

    path: Path
    rows: list[Row] = field(default_factory=list)
    signal: int | None = None

    @property
    def verdicts(self) -> list[CapabilityVerdict]:
        return verdicts(self.rows)

    @property
    def exit_code(self) -> int:
        if self.signal is not None:
            return 128 + self.signal
        return 0 if all(verdict.is_good for verdict in self.verdicts) else 1


def audit(
    selection: KernelSelection, root: Path, command: Sequence[str], listener: Listener
) -> AuditResult:
    """Compile the selected kernels into a new run folder. Raises Refusal."""
    if find_spec("triton") is None:
        raise EnvironmentUnmet(
            "kernels audit: triton is not installed; it brings the compilers:"
            " pip install 'attnbench[triton]'"
        )
    try:
        pool = CompilerPool(selection)
    except WorkerFailure as failure:
        reason = f"no compiler could be started: {failure.reason}\n{failure.log_tail or ''}"
        raise EnvironmentUnmet(reason.rstrip()) from None
    with pool:
        store = Store.create(root, NAME, _meta(selection, pool, command))
        pool.logs = store.path / LOGS
        try:
            return _compile(pool, store, listener)
        finally:
            store.close()


def _meta(selection: KernelSelection, pool: CompilerPool, command: Sequence[str]) -> dict[str, Any]:
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


def _compile(pool: CompilerPool, store: Store, listener: Listener) -> AuditResult:
    result = AuditResult(path=store.path)
    left = {plan["case"]: plan for plan in pool.kernels}

    def keep(record: Record) -> None:
        for kept in store.append([record]):
            result.rows.append(kept.row())
            listener.finished(kept)

    listener.begin(Begun(store.path, {"kernels": len(left)}))
    advice = "compiled kernels are in Triton's cache, so the next audit is faster"
    with Signals(advice=advice) as signals:
        try:
            for event in pool.results(signals.check):
                if isinstance(event, Started):
                    listener.running(event.case, "")
                else:
                    keep(kernel_record(left.pop(event.case), **event.fields))
        except Interrupted:
            result.signal = signals.received
            name = signal_name(signals.received or signal.SIGINT)
            for plan in left.values():
                reason = f"not compiled: stopped by {name}"
                keep(kernel_record(plan, Status.INTERRUPTED, reason))
    order = {plan["case"]: place for place, plan in enumerate(pool.kernels)}
    result.rows.sort(key=lambda row: order[row["case"]])
    return result
