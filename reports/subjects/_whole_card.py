"""The wall of the whole GPU, calculated: where the formulas that were right to the byte meet all of
its memory, however small the budget of the run was.
"""

from bisect import bisect

from ..data.row_groups import Group
from ..data.run_meta import Meta, budget_bytes, caption, finite_number
from ..elements import Figure, Panel, Series, table_of
from ..formatting import length_text, list_text, plural, size_text
from ..quantity import Number
from ._memory_over_n import MemoryCurve, memory_curves

LEAST_RATIO = 1.1  # of the card to the budget: below it the run's own wall is that of the card
STEPS = 40  # doublings of a curve
MOST_N = 1 << STEPS


def whole_card(group: Group, meta: Meta) -> tuple[str, Figure] | None:
    """A sentence and the picture; None without formulas, on a CPU, or if the run used it all."""
    run = meta[group.problem["run"]]
    card_bytes = finite_number(run.get("environment") or {}, "device_memory_bytes")
    budget = budget_bytes(run)
    if run["device"] != "cuda" or not card_bytes or card_bytes < LEAST_RATIO * (budget or 0):
        return None
    curves = [one for one in memory_curves(group, meta) if one.need is not None and one.peak]
    ends = [
        (one, longest(one, card_bytes))
        for one in curves
        if one.need is not None and one.need.quadratic > 0
    ]
    if not ends:
        return None
    ends.sort(key=lambda end: end[1])
    last, size = ends[-1][1], size_text(int(card_bytes))
    texts = [f"{one.backend} fits up to N\u00a0=\u00a0{length_text(n)}" for one, n in ends]
    linear = [one for one in curves if one.need is not None and one.need.quadratic <= 0]
    heads = plural(group.problem["heads"], "head")
    sentence = f"Calculated for the whole card ({size}, {heads}): {list_text(texts)}."
    return sentence, Figure(
        title=sentence,
        caption=f"{caption(group.problem, meta)} · calculated by formulas, not measured",
        about="Every line is calculated",
        panels=(
            Panel(
                title=f"{heads}, calculated",
                x_label="sequence length N",
                y_label="memory needed, calculated",
                unit="bytes",
                series=(
                    *(_series(one, n, length_text(n)) for one, n in ends),
                    *(_series(one, last, "") for one in linear),
                ),
                line=(card_bytes, f"{size}, the whole card"),
            ),
        ),
        table=table_of(
            f"The longest N in {size}, calculated",
            ends,
            {
                "backend": lambda end: end[0].backend,
                "longest N": lambda end: Number(length_text(end[1])),
            },
        ),
        both_scales=True,
    )


def longest(curve: MemoryCurve, card_bytes: float) -> int:
    """The longest N that fits by the formula."""
    assert curve.need is not None
    need = curve.need
    return bisect(range(1, MOST_N), card_bytes, key=lambda n: float(need.at(n)))


def _series(curve: MemoryCurve, last: int, ending: str) -> Series:
    assert curve.need is not None
    first = curve.rows[0]["seq_len"]
    xs = [n for step in range(STEPS) if (n := first << step) < last] + [last]
    return Series(
        backend=curve.backend,
        kind="formula",
        x=tuple(xs),
        y=tuple(float(curve.need.at(n)) for n in xs),
        ending=f"up to {ending}" if ending else "",
    )
