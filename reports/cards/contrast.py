"""The scenario's contrast: what one setting costs against another, as dots with intervals."""

from collections.abc import Iterator, Sequence
from math import isfinite

import pandas as pd

from ..analysis.contrasts import (
    Contrast,
    Contrasted,
    answer,
    chosen,
    contrasted,
    last_of,
    place,
    setting,
    time_word,
    varying,
    word,
)
from ..analysis.heads import MARGIN_RATIO
from ..data.row_groups import Group, axis_text, backends, records
from ..data.run_meta import Meta
from ..elements import Card, Dot, DotPlot, DotRow, Table
from ..formatting import list_text, number_text, plural, ratio_range_text

ORDER = 15
LENGTHS = ("seq_len", "kv_seq_len")
_TITLES = {
    "passes": "What the backward pass adds",
    "mask": "What the mask costs",
    "causal": "Causal against not causal",
    "kv_heads": "What shared key and value heads save",
    "heads": "What removed heads save",
    "kv_seq_len": "What a longer cache costs",
    "dtype": "What the number format changes",
    "window": "What the window changes",
    "scope": "Core, layer and block",
    "d_model": "What a wider model costs",
    "d_k": "What wider heads cost",
    "batch": "What a larger batch costs",
}
Picked = tuple[Group, Sequence[Contrast]]


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    found = next(iter(contrasted(records(frame), meta, only_asked=True)), None)
    if found is None or not (sentence := answer(found)):
        return None
    picked = chosen(found)
    rows = tuple(_rows(picked))
    first = next(one for _, some in picked for one in some if one.backend == found.lead)
    last = last_of([one for _, some in picked for one in some], found.lead) or first
    against = f"{setting(found.axis, last.row)} against {setting(found.axis, last.base)}"
    run = f", {found.run}" if len(meta) > 1 else ""
    return Card(
        name="contrasts",
        title=_TITLES[found.axis],
        sentence=f"{sentence}.",
        picture=DotPlot(
            rows=rows,
            x_label=f"ratio, {against}",
            band_ratio=MARGIN_RATIO,
            description=(
                f"Ratios of {against} on one logarithmic axis, per backend: time with its 95 %"
                " interval, and peak bytes. The band around 1 counts as the same. The table below"
                " has every number."
            ),
            table=_table(rows, against),
        ),
        subtitle=f"ratios to {setting(found.axis, last.base)}{_at(picked)}{run}",
        note=_note(found, picked),
    )


def _rows(picked: Sequence[Picked]) -> Iterator[DotRow]:
    """In every chosen setting: time per backend, then bytes."""
    axes = varying(picked)
    for group, some in picked:
        for what in ("Time", "Peak memory"):
            for backend in backends(one.row for one in some):
                one = last_of(some, backend)
                dot = None if one is None else _dot(what, one)
                yield DotRow(
                    group=what,
                    label=backend,
                    dot=dot,
                    missing="" if dot or one is None else _missing(what, one),
                    remark=place(group, axes),
                )


def _dot(what: str, one: Contrast) -> Dot | None:
    return _time(one) if what == "Time" else _counted(one.peak_bytes)


def _missing(what: str, one: Contrast) -> str:
    return (one.missing if what == "Time" else "") or "no pair"


def _time(one: Contrast) -> Dot | None:
    found = one.same_time
    kind = time_word(found)
    if found is None or kind is None:
        return None
    known = isfinite(found.low) and isfinite(found.high)
    return Dot(
        ratio=found.value,
        low=found.low if known else None,
        high=found.high if known else None,
        word=kind,
    )


def _counted(ratio: float) -> Dot | None:
    return Dot(ratio=ratio, word=word(ratio, ratio)) if isfinite(ratio) and ratio > 0 else None


def _at(picked: Sequence[Picked]) -> str:
    """The lengths that the chosen problems share: `, N = 1k`."""
    of = picked[0][0].problem
    known = [(axis, of.get(axis)) for axis in LENGTHS]
    lengths = [(axis, n) for axis, n in known if isinstance(n, int) and n > 1]
    return "".join(f", {axis_text(axis, n)}" for axis, n in lengths)


def _note(of: Contrasted, picked: Sequence[Picked]) -> str:
    """What is counted and equal for every backend, and how the times were measured."""
    axes = varying(picked)
    texts = []
    for name, field in (("FLOPs", "work_flops"), ("exponentials", "work_exps")):
        ratios: dict[str, str] = {}
        for group, some in picked:
            one = last_of(some, of.lead)
            if one is not None and isfinite(getattr(one, field)):
                ratios[place(group, axes)] = number_text(getattr(one, field))
        if len(set(ratios.values())) == 1:
            texts.append(f"{name} × {next(iter(ratios.values()))}")
        elif ratios:
            texts.append(f"{name} " + ", ".join(f"× {ratio} {at}" for at, ratio in ratios.items()))
    ratios_of_time = [one.time for _, some in picked for one in some if one.time is not None]
    paired = all(one.paired for one in ratios_of_time)
    how = "Times are paired block by block." if paired else "Some times are unpaired."
    more = len(of.problems) - len(picked)
    rest = (
        f" {plural(more, 'more problem is', 'more problems are')} under Contrasts."
        if more > 0
        else ""
    )
    return f"Counted: {list_text(texts)}. {how}{rest}" if texts else f"{how}{rest}"


def _table(rows: Sequence[DotRow], against: str) -> Table:
    cells = tuple(
        (
            ", ".join(filter(None, (row.group, row.remark))),
            row.label,
            number_text(row.dot.ratio) + ratio_range_text(row.dot.low, row.dot.high)
            if row.dot
            else row.missing,
            row.dot.word if row.dot else "",
        )
        for row in rows
    )
    return Table(
        title=f"{against}: ratios",
        columns=("of", "backend", "ratio (95 % interval)", "word"),
        rows=cells,
    )
