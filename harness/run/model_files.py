"""Files with models in a run: those that the user names, and those that studies save."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from ..errors import BadInput
from ..printable import visible
from ..process.interpreter import Interpreter
from ..process.signals import Signals
from ..process.worker_process import WorkerFailure
from ..scenario import Scenario
from ..studies.checkpoints.given import Checkpoint
from .environments import start_worker
from .run_rows import RunPlan

MODELS = "models"
"""The folder within a run's that saved models go to."""
OPEN_S = 600.0  # weights of many GiB on a network disk


def refuse_bad_checkpoints(
    checkpoints: Sequence[Checkpoint],
    device: str,
    budget_bytes: int,
    interpreters: Sequence[Interpreter],
    signals: Signals,
) -> None:
    """Open each in a worker of its own, so that what it loads disturbs no measurement.

    Raises BadInput with what is wrong, WorkerFailure if no worker can be started, Interrupted.
    """
    if not checkpoints:
        return
    problems: list[str] = []
    python = interpreters[0].path if interpreters else None
    worker = start_worker(device, python, signals.wake_fd)
    try:
        for one in checkpoints:
            request = {
                "op": "open_checkpoint",
                "checkpoint": one.request(),
                "budget_bytes": budget_bytes,
            }
            try:
                problems += worker.ask(request, "opened", OPEN_S)["problems"]
            except WorkerFailure as failure:
                raise BadInput(
                    f"{one.flag}: the process that opened it ended: {failure.reason}; wanted a"
                    " model that fits into memory"
                ) from None
    finally:
        worker.kill()
    if problems:
        raise BadInput(*(f"--checkpoint: {problem}" for problem in problems))


def refuse_unsaved(scenario: Scenario) -> None:
    """Raises BadInput if models are to be saved, and the package for it is missing."""
    if scenario.save_models and find_spec("safetensors") is None:
        raise BadInput(
            f"{scenario.source}: save_models: needs safetensors, which is not installed: pip"
            " install 'attnbench[checkpoint]'"
        )


def with_model_files(plan: RunPlan, checkpoints: Sequence[Checkpoint], *, save: bool) -> RunPlan:
    """`save`: whether studies keep the models that they train."""
    config = replace(
        plan.config,
        checkpoints={one.name: one.request() for one in checkpoints},
        save_to=plan.store.path.resolve() / MODELS if save else None,
    )
    return replace(plan, config=config)


def refuse_elsewhere(scenario: Mapping[str, Any], checkpoints: Sequence[str]) -> None:
    """Raises BadInput for files of this machine in a run that other machines measure."""
    if checkpoints:
        raise BadInput(
            f"--checkpoint {visible(checkpoints[0])}: a file of this machine, and --on measures on"
            " others; leave --on out"
        )
    if scenario.get("save_models") is True:
        raise BadInput(
            "save_models: models stay on the machine that trains them, and --on trains on others;"
            " leave --on out, or add --set save_models=false"
        )
