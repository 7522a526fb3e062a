"""The wall of the whole GPU: where the formulas that were right to the byte meet all of its memory,
however small the budget of the run was.
"""

from bisect import bisect
from collections.abc import Iterator
from dataclasses import replace

from ..data.row_groups import Group
from ..data.run_meta import Meta, budget_bytes, finite_number
from ..elements import Card, Figure, Panel, Series
from ..formatting import length_text, list_text, paragraph, plural, size_text
from ._memory_over_n import MemoryCurve, memory_curves
from ._over import n_text

LEAST_RATIO = 1.1  # of the card to the budget: below it the run's own wall is that of the card
STEPS = 40  # doublings of a curve
MOST_N = 1 << STEPS


def with_whole_gpu(card: Card, group: Group, meta: Meta) -> tuple[Card, list[Figure]]:
    """With a sentence more, and the whole GPU's panel beside that of the most heads; the others'
    are pictures of their own. As it is without formulas, on a CPU, or if the run used all of the
    memory.
    """
    run = meta[group.problem["run"]]
    whole_bytes = finite_number(run.get("environment") or {}, "device_memory_bytes")
    curves = [one for one in memory_curves(group, meta) if one.need is not None and one.peak]
    growing = [one for one in curves if one.need is not None and one.need.quadratic > 0]
    too_small = not whole_bytes or whole_bytes < LEAST_RATIO * (budget_bytes(run) or 0)
    if run["device"] != "cuda" or too_small or not whole_bytes or not growing:
        return card, []
    assert isinstance(card.picture, Figure)
    ends = sorted([(one, longest(one, whole_bytes)) for one in growing], key=lambda end: end[1])
    last, size = ends[-1][1], size_text(int(whole_bytes))
    linear = [(one, None) for one in curves if one not in growing]
    heads = plural(group.problem["heads"], "head")
    panel = Panel(
        title=f"{heads} in {size}, the whole GPU",
        x_label=f"sequence length N, calculated beyond {length_text(max(group.lengths))}",
        y_label="memory needed",
        unit="bytes",
        x_scale="linear",
        y_scale="linear",
        series=tuple(line for one, n in [*ends, *linear] for line in _series(one, last, n)),
        line=(whole_bytes, size),
    )
    texts = [f"{n_text(n)} for {one.backend}" for one, n in ends]
    said = f"Calculated limits of the whole GPU ({size}, {heads}): {list_text(texts)}."
    *rest, most = card.picture.panels
    limit = f" in {most.line[1]}" if most.line else ""
    panels = (replace(most, title=most.title + limit), panel)
    picture = replace(card.picture, panels=panels, same_y=False)
    others = [replace(card.picture, title=one.title, panels=(one,)) for one in rest]
    return replace(card, note=paragraph(card.note, said), picture=picture), others


def longest(curve: MemoryCurve, whole_bytes: float) -> int:
    """The longest N that fits by the formula."""
    assert curve.need is not None
    need = curve.need
    return bisect(range(1, MOST_N), whole_bytes, key=lambda n: float(need.at(n)))


def _series(curve: MemoryCurve, last: int, stop: int | None) -> Iterator[Series]:
    """What was measured, and from there to the last N what the formula says."""
    assert curve.need is not None
    first = curve.longest_need[0] if curve.longest_need else curve.rows[0]["seq_len"]
    xs = [n for step in range(STEPS) if (n := first << step) < last] + [last]
    size = size_text(int(curve.need.at(last)))
    yield Series(
        backend=curve.backend,
        kind="measured",
        x=tuple(n for n, _ in curve.measured),
        y=tuple(need for _, need in curve.measured),
    )
    yield Series(
        backend=curve.backend,
        kind="formula",
        x=tuple(xs),
        y=tuple(float(curve.need.at(n)) for n in xs),
        ending=size if stop is None else f"up to {length_text(stop)}",
        stop=stop,
    )
