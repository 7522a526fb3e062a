"""Findings of the study trained_heads, made up: what each test needs, and nothing was trained."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.made_runs import with_study

N = 6


def shifted(back: int, share: float = 1.0) -> list[list[float]]:
    """A causal map with `share` of the weight so many places back, the rest on the own token."""
    rows = [[0.0] * N for _ in range(N)]
    for query in range(N):
        rows[query][max(0, query - back)] += share
        rows[query][query] += 1 - share
    return rows


def training(task: str, heads: int, seed: int, accuracy: float, **other: Any) -> dict[str, Any]:
    return {
        "study": "trained_heads",
        "task": task,
        "heads": heads,
        "train_seed": seed,
        "seed_number": seed,
        "d_model": 64,
        "depth": 1,
        "tokens": N,
        "loss_nats": 2 * (1 - accuracy),
        "accuracy_ratio": accuracy,
        "step_ms": [1.0 * heads, 1.1 * heads, 0.9 * heads],
        "step_peak_bytes": (1 + heads) << 20,
        "whole_loss_nats": 0.1,
        "single_loss_nats": [[0.1 + 0.1 * head for head in range(heads)]],
        "pruned_loss_nats": [0.1 * (1 + gone) for gone in range(heads + 1)],
        "pruned_removed_heads": list(range(heads + 1)),
        "greedy_removed_heads": [0, heads] if heads == 1 else [0, heads // 2, heads],
        "greedy_loss_nats": [0.1, 0.2] if heads == 1 else [0.1, 0.15, 0.1 * (1 + heads)],
        **other,
    }


def trainings(accuracies: Mapping[str, Mapping[int, Iterable[float]]]) -> list[dict[str, Any]]:
    """By task, heads and seed."""
    return [
        training(task, heads, seed, accuracy)
        for task, by_heads in accuracies.items()
        for heads, values in by_heads.items()
        for seed, accuracy in enumerate(values)
    ]


def learning(
    task: str, steps: Mapping[int, Iterable[int | None]], limit: int = 1000, **other: Any
) -> list[dict[str, Any]]:
    """By heads and seed: steps until learnt, None if the limit came first."""
    return [
        training(
            task,
            heads,
            seed,
            0.4 if learnt is None else 0.99,
            d_k=64 // heads,
            goal_ratio=0.98,
            limit_steps=limit,
            learnt_steps=learnt,
            looked_steps=[20, learnt or limit],
            looked_accuracy_ratio=[0.2, 0.4 if learnt is None else 0.99],
            **other,
        )
        for heads, values in steps.items()
        for seed, learnt in enumerate(values)
    ]


def roles(**other: Any) -> list[dict[str, Any]]:
    """Of the study trained_roles: six seeds whose second block looks at the subject."""
    named = {
        f"{role}_{of}": value
        for role in ("subject", "rare", "local")
        for of, value in (
            ("even_weight", 0.2),
            ("weight_before", [[0.2, 0.21], [0.19, 0.22]]),
            ("weight_after", [[0.1, 0.3], [0.1, 0.8]]),
        )
    }
    left = {
        f"{variant}_{of}": value
        for variant, loss in (
            ("whole", 0.4),
            ("pruned_after", 1.2),
            ("pruned_during", 0.5),
            ("half_from_start", 0.45),
        )
        for of, value in (("nats", loss), ("endings_ratio", 0.9), ("far_endings_ratio", 0.6))
    }
    return [
        {
            "study": "trained_roles",
            "task": "text",
            "heads": 2,
            "tokens": 32,
            "train_seed": seed,
            "accuracy_ratio": 0.8,
            "verb_count": 128,
            "far_verb_count": 31,
            "removed_heads": 2,
            **named,
            **left,
            **other,
        }
        for seed in range(6)
    ]


def with_trainings(parent: Path, findings: list[Any], **row: Any) -> Path:
    """The run quickstart with one row of the study."""
    usual = {"study": "trained_heads", "part": {"task": "recall", "heads": 1}}
    case = "study-trained_heads-recall-heads1"
    return with_study(parent, findings=findings, case=case, **(usual | row))
