"""Files with models in a run: those that the user names, and those that studies save."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec

from ..files.errors import BadInput
from ..process.interpreter import Interpreter
from ..process.signals import Signals
from ..process.worker_process import WorkerFailure
from ..run.environments import start_worker
from ..run.run_rows import RunPlan
from ..scenario import Scenario
from .checkpoints.given import Checkpoint, TriedCheckpoints
from .checkpoints.shipped import Shipped

MODELS = "models"
"""The folder within a run's that saved models go to."""
OPEN_S = 600.0  # weights of many GiB on a network disk


def refuse_bad_checkpoints(
    checkpoints: Sequence[Checkpoint],
    device: str,
    budget_bytes: int,
    interpreters: Sequence[Interpreter],
    signals: Signals,
) -> list[str]:
    """Open each; remarks on them for the user.

    Raises BadInput with what is wrong, WorkerFailure if no worker can be started, Interrupted.
    """
    if not checkpoints:
        return []
    requests = {one.name: one.request() for one in checkpoints}
    found = try_checkpoints(requests, device, budget_bytes, interpreters, signals)
    if found.problems:
        raise BadInput(*(f"--checkpoint: {problem}" for problem in found.problems))
    return found.remarks


def try_checkpoints(
    requests: Mapping[str, Mapping[str, str | None]],
    device: str,
    budget_bytes: int,
    interpreters: Sequence[Interpreter],
    signals: Signals,
) -> TriedCheckpoints:
    """Open each in one worker of their own, so that what they load disturbs no measurement.

    Raises WorkerFailure if it cannot be started, Interrupted.
    """
    problems: list[str] = []
    remarks: list[str] = []
    python = interpreters[0].path if interpreters else None
    worker = start_worker(device, python, signals.wake_fd)
    try:
        for name, checkpoint in requests.items():
            request = {
                "op": "open_checkpoint",
                "checkpoint": checkpoint,
                "budget_bytes": budget_bytes,
            }
            try:
                answer = worker.ask(request, "opened", OPEN_S)
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
    return TriedCheckpoints(problems, remarks)


def refuse_unsaved(scenario: Scenario) -> None:
    """Raises BadInput if models are to be saved, and the package for it is missing."""
    if scenario.save_models and find_spec("safetensors") is None:
        raise BadInput(
            f"{scenario.source}: save_models: needs safetensors, which is not installed: pip"
            " install 'attnbench[checkpoint]'"
        )


def with_model_files(
    plan: RunPlan,
    checkpoints: Sequence[Checkpoint | Shipped],
    remarks: Sequence[str],
    *,
    save: bool,
) -> RunPlan:
    """`save`: whether studies keep the models that they train."""
    config = replace(
        plan.config,
        checkpoints={one.name: one.request() for one in checkpoints},
        save_to=plan.store.path.resolve() / MODELS if save else None,
    )
    return replace(plan, config=config, remarks=[*plan.remarks, *remarks])
