"""What the claims on trained heads share: the study trained_heads, task by task.

A part is a task. Every verdict holds for that task, at the size of the study, and says so.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ...data.row_groups import Row
from ..trained_heads import Finding, HeadCount, TaskResult, results
from .claim_verdict import ClaimVerdict, Part
from .statement import Statement

HEADS = 8  # where heads of a model are compared with each other


def statement_on_tasks(
    part: Callable[[TaskResult], Part | None], *, statement: str, tested: str
) -> Statement:
    """`part`: the verdict for one task, or None if its models cannot answer."""

    def test(_: Sequence[Row], findings: Sequence[Any]) -> list[Part]:
        found = (part(one) for one in results({"studies": list(findings)}))
        return [one for one in found if one is not None]

    return Statement(
        statement=statement,
        tested=f"{tested}; holds for small decoders trained for minutes",
        to_run="studies: [trained_heads], as in the scenario what_heads_learn",
        test=test,
        study="trained_heads",
    )


def on_this_task(result: TaskResult, verdict: ClaimVerdict, text: str, count: HeadCount) -> Part:
    """With on what it holds."""
    sizes = count.trainings[0]
    where = f"d_model {sizes.get('d_model')}, {len(count.trainings)} seeds"
    return Part(of=result.task, verdict=verdict, numbers=f"{text} ({where})")


def exactly(result: TaskResult, heads: int) -> HeadCount | None:
    return next((one for one in result.counts if one.heads == heads), None)


def at_most(result: TaskResult, heads: int) -> HeadCount | None:
    """With so many heads, else with the most below, if they are two at least."""
    fits = [one for one in result.counts if 2 <= one.heads <= heads]
    return fits[-1] if fits else None


def by_seed(count: HeadCount) -> list[Finding]:
    return sorted(count.trainings, key=lambda one: int(one["train_seed"]))
