"""Findings of the study trained_heads, made up: what each test needs, and nothing was trained."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.made_runs import with_study


def training(task: str, heads: int, seed: int, learnt: int | None, **other: Any) -> dict[str, Any]:
    """`learnt`: steps until then, None if the limit came first."""
    steps = [20, (learnt or 980) + 20]
    return {
        "study": "trained_heads",
        "task": task,
        "heads": heads,
        "train_seed": seed,
        "is_tuning": False,
        "learning_rate": 0.003,
        "goal_ratio": 0.98,
        "limit_steps": 1000,
        "learnt_steps": learnt,
        "looked_steps": steps,
        "looked_accuracy_ratio": [0.2, 0.4 if learnt is None else 0.99],
        "looked_loss_nats": [2.0, 1.0 if learnt is None else 0.1],
        "step_ms": [1.0 * heads, 1.1 * heads, 0.9 * heads],
        **other,
    }


def trainings(
    task: str, steps: Mapping[int, Iterable[int | None]], **other: Any
) -> list[dict[str, Any]]:
    """By heads and seed: steps until learnt."""
    return [
        training(task, heads, seed, learnt, **other)
        for heads, values in steps.items()
        for seed, learnt in enumerate(values)
    ]


def with_trainings(parent: Path, findings: list[Any]) -> Path:
    """The run quickstart with one row of the study."""
    part = {"task": "copy", "heads": 1}
    case = "study-trained_heads-copy-heads1"
    return with_study(parent, findings=findings, case=case, study="trained_heads", part=part)
