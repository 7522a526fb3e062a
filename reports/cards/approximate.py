"""Approximate attention: how far off each setting is, over the time that it takes."""

from collections.abc import Sequence

import pandas as pd

from ..analysis.approximate import Trade, approximating, emptiness, method, trades
from ..data.exactness import carries_nothing, error_text
from ..data.row_groups import axis_text, backends, case_key, records
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, Panel, Series, Table
from ..formatting import plural, time_text
from ..subjects._over import tests_claims

ORDER = 18


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    """At the longest N with an error, of the first problem; None for runs that test claims."""
    if tests_claims(meta):
        return None
    known = [
        (group, some)
        for group in approximating(records(frame))
        if (some := [one for one in trades(group) if one.error_l2_ratio])
    ]
    if not known:
        return None
    group, every = known[0]
    longest = max(one.row["seq_len"] for one in every)
    made = [one for one in every if one.row["seq_len"] == longest]
    at = axis_text("seq_len", longest)
    more = len(known) - 1
    drawn = [one for one in made if not carries_nothing(one.row)]
    # A setting that carries no information has no place in the picture, only in the note.
    finding = "; ".join(_best(drawn)) or (
        "no approximation's output has anything in common with the exact one"
    )
    text = group.prefixed(f"at {at} {finding}")
    why = emptiness(group)
    return Card(
        name="approximate",
        title="Error against time",
        sentence=f"{text[0].upper()}{text[1:]}.",
        picture=_table(made)
        if not drawn
        else Figure(
            title=text,
            caption=caption({**group.problem, "seq_len": longest}, meta),
            description=(
                "Relative error over latency, both logarithmic, one dot per approximation and size."
                " The table below has every number."
            ),
            panels=(
                Panel(
                    x_label=f"latency in ms, at {at}",
                    y_label="relative error",
                    unit="share",
                    series=tuple(_dot(drawn, name) for name in backends(one.row for one in drawn)),
                ),
            ),
            table=_table(made),
        ),
        subtitle=f"error over latency at {at}",
        note=(
            "Random inputs and untrained weights: trained ones may do better."
            + (f" {why[0].upper()}{why[1:]}" if why else "")
            + (f" {plural(more, 'more problem')} below." if more > 0 else "")
        ),
    )


def _best(made: Sequence[Trade]) -> list[str]:
    """Of each family, the setting with the smallest error."""
    texts = []
    for name in dict.fromkeys(method(one.row["backend"]) for one in made):
        mine = [one for one in made if method(one.row["backend"]) == name]
        one = min(mine, key=lambda one: one.error_l2_ratio or 0.0)
        against = f" and takes {one.ratio.text} the time of {one.against}" if one.ratio else ""
        texts.append(
            f"{one.row['backend']} is off by {error_text(one.error_l2_ratio or 0)}{against}"
        )
    return texts


def _dot(made: Sequence[Trade], backend: str) -> Series:
    (one,) = [one for one in made if one.row["backend"] == backend][:1]
    return Series(
        backend=backend,
        kind="measured",
        x=(one.row["latency_ms"],),
        y=(one.error_l2_ratio,),
        cases=(case_key(one.row),),
    )


def _table(made: Sequence[Trade]) -> Table:
    return Table(
        title="Error and time of approximations",
        columns=("backend", "error", "time", "time over the fastest exact backend"),
        rows=tuple(
            (
                one.row["backend"],
                error_text(one.error_l2_ratio or 0),
                time_text(one.row["latency_ms"]),
                f"{one.against}: {one.ratio.text}" if one.ratio else "",
            )
            for one in made
        ),
    )
