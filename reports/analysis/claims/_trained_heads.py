"""What the claims on trained heads share: the study trained_heads, task by task.

A part is a task. Every verdict holds for that task, at the size of the study, and says so.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ....harness.stats.intervals import Interval
from ...data.row_groups import Row
from ...formatting import number_text, plural, range_text
from ..trained_heads import HeadCount, TaskResult, results
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


def on_this_task(
    result: TaskResult, verdict: ClaimVerdict, text: str, count: HeadCount, found: Interval
) -> Part:
    """With on what it holds. `found`: what decides; seeds that lack what it needs are no units."""
    sizes = count.trainings[0]
    where = f"d_model {sizes.get('d_model')}, {plural(found.units, 'seed')}"
    return Part(of=result.task, verdict=verdict, numbers=f"{text} ({where})")


def exactly(result: TaskResult, heads: int) -> HeadCount | None:
    return next((one for one in result.counts if one.heads == heads), None)


def at_most(result: TaskResult, heads: int) -> HeadCount | None:
    """With so many heads, else with the most below, if they are two at least."""
    fits = [one for one in result.counts if 2 <= one.heads <= heads]
    return fits[-1] if fits else None


def bounded(one: Interval, unit: str) -> str:
    """`0.21 bits (0.18 to 0.24)`."""
    return f"{number_text(one.value)} {unit}{range_text(one.low, one.high)}"


def bounded_percent(one: Interval, digits: int = 1) -> str:
    return f"{100 * one.value:.{digits}f} %{range_text(100 * one.low, 100 * one.high)}"
