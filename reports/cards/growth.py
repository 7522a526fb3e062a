"""How time grows along the size that a scenario varies, where that is what it asks."""

import pandas as pd

from ..analysis.growth_along import Along, growth_along, joint_finding, main_axis
from ..data.exactness import baseline
from ..data.row_groups import Group, axis_title, records
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure
from ..subjects._over import MOST_PANELS, challenges, tests_claims, time_panels, time_table

ORDER = 14


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    """None over N if other cards answer: who fits, who is faster, what heads cost."""
    for name, run in meta.items():
        rows = [row for row in records(frame) if row["run"] == name]
        over_n = tests_claims(meta) and any(map(challenges, rows))
        axis = "seq_len" if over_n else main_axis(rows, run)
        if axis and (found := growth_along(rows, axis)[:MOST_PANELS]):
            return _card(found, axis, baseline(run, rows) or "", meta)
    return None


def _card(found: list[tuple[Group, list[Along]]], axis: str, lead: str, meta: Meta) -> Card:
    every = axis == "seq_len"  # the question is which of them grow
    groups = [group for group, _ in found]
    x = axis_title(axis)
    text = joint_finding(found, "" if every else lead)
    return Card(
        name="growth",
        title=f"Growth with {x}",
        sentence=f"{text[0].upper()}{text[1:]}.",
        picture=Figure(
            title=text,
            caption=caption(groups[0].problem, meta),
            description=(
                f"Latency over {x}, both logarithmic, one line per backend, with 95 % intervals as"
                " bars. The table below has every number."
            ),
            panels=time_panels(groups, axis),
            table=time_table(groups, axis),
        ),
        subtitle=f"latency over {x}",
        note="x is the slope between the ends: 1 is linear, 2 quadratic. Growth has every step.",
        wide=len(groups) > 2,
    )
