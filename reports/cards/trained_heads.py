"""How many heads each trained task needs, and what they cost beside one."""

from collections.abc import Sequence

import pandas as pd

from ..analysis.trained_heads import MARGIN_RATIO, HeadCount, TaskResult, results
from ..data.run_meta import Meta
from ..elements import Card, Table
from ..formatting import list_text, number_text, plural

ORDER = 11


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    """Of the first run that trained several numbers of heads."""
    for run in meta.values():
        found = [one for one in results(run) if len(one.counts) > 1]
        if found:
            return Card(
                name="trained_heads",
                title="How many heads",
                subtitle="by task, after training",
                sentence=_sentence(found),
                picture=_table(found),
                note=(
                    "Enough: no other number of heads is better by"
                    f" {100 * MARGIN_RATIO:g} points of accuracy, by an interval over seeds. Equal"
                    " parameters and steps; small models, so nothing follows for large ones. Time"
                    " and memory: with enough heads, and with the most, over 1 head."
                ),
                wide=True,
            )
    return None


def _sentence(found: Sequence[TaskResult]) -> str:
    """`1 head is enough for recall and copy; six_relations needs 8. 64 heads are worse ...`."""
    by_heads: dict[int, list[str]] = {}
    for one in found:
        by_heads.setdefault(one.enough.heads, []).append(one.task)
    parts = [
        f"{plural(heads, 'head')} {'is' if heads == 1 else 'are'} enough for {list_text(tasks)}"
        for heads, tasks in sorted(by_heads.items())
    ]
    text = f"{'; '.join(parts)}."
    most = max(count.heads for one in found for count in one.counts)
    too_many = [one.task for one in found if most in one.of("worse")]
    if too_many:
        text += f" {most} heads are worse than the best for {list_text(too_many)}."
    return text


def _table(found: Sequence[TaskResult]) -> Table:
    return Table(
        title="The fewest heads that are enough",
        columns=(
            *("task", "enough", "right answers", "with 1 head", "with the most"),
            *("time of a step", "memory of a step"),
        ),
        rows=tuple(_row(one) for one in found),
    )


def _row(one: TaskResult) -> tuple[str, ...]:
    first, last = one.counts[0], one.counts[-1]
    return (
        one.task,
        plural(one.enough.heads, "head"),
        _share(one.enough),
        _share(first) if first.heads == 1 else "",
        f"{_share(last)} ({last.heads})",
        _ratios(one.enough.step.value, last.step.value, first.step.value),
        _ratios(one.enough.peak_bytes, last.peak_bytes, first.peak_bytes),
    )


def _share(one: HeadCount) -> str:
    return f"{100 * one.accuracy.value:.1f} %"


def _ratios(enough: float | None, last: float | None, first: float | None) -> str:
    """`× 2.22, × 3.98`; "" if one is not known."""
    if enough is None or last is None or first is None or not first > 0:
        return ""
    return f"× {number_text(enough / first)}, × {number_text(last / first)}"
