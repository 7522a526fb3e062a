"""Files beside a run's rows: attachments, which studies look at, and the folder of saved models."""

from collections.abc import Mapping, Sequence

from ..process.interpreter import Interpreter
from ..process.signals import Signals
from ..process.worker_process import WorkerFailure
from ..studies.attachments import Tried
from .environments import start_worker

MODELS = "models"
"""The folder within a run's that saved models go to."""
OPEN_S = 600.0  # weights of many GiB on a network disk

Told = Mapping[str, str | None]
"""What a worker is told of an attachment."""


def tried(
    attached: Mapping[str, tuple[str, Told]],
    device: str,
    budget_bytes: int,
    interpreters: Sequence[Interpreter],
    signals: Signals,
) -> Tried:
    """Open each in one worker of their own, so that what they load disturbs no measurement.

    `attached`: the study of each, and what it is told. Raises WorkerFailure if no worker can be
    started, Interrupted.
    """
    problems: list[str] = []
    remarks: list[str] = []
    if not attached:
        return Tried(problems, remarks)
    python = interpreters[0].path if interpreters else None
    worker = start_worker(device, python, signals.wake_fd)
    try:
        for name, (study, told) in attached.items():
            request = {"op": "try_attachment", "study": study, "attached": told}
            try:
                answer = worker.ask({**request, "budget_bytes": budget_bytes}, "opened", OPEN_S)
            except WorkerFailure as failure:
                problems.append(
                    f"{name}: the process that opened it ended: {failure.reason}; wanted a model"
                    " that fits into memory"
                )
                break
            problems += answer["problems"]
            remarks += [f"{name}: {remark}" for remark in answer["remarks"]]
    finally:
        worker.kill()
    return Tried(problems, remarks)
