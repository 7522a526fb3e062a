"""Findings of studies: what 1/sqrt(d_k) does to scores, errors per dtype, tables of the others."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...harness.rows.findings import findings_of
from ..data.findings import Precision, ScoreScale
from ..data.row_groups import Group, Row, backends, by
from ..data.run_meta import Meta, run_caption
from ..elements import Block, Figure, Table, note
from ..formatting import list_text, number_text
from ..quantity import cell_text
from . import Subject, tellers
from ._over import panel
from ._probe_tables import entry_cell

TITLE = "Studies"
SECTION = "more"
APART = True
ORDER = 51
SCALE, PRECISION = ScoreScale.STUDY, Precision.STUDY
Finding = Mapping[str, Any]


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    return Subject(blocks=tuple(_blocks(rows, meta)))


def _blocks(rows: Sequence[Row], meta: Meta) -> Iterator[Block]:
    drawn = False
    elsewhere = {study for one in tellers() for study in getattr(one, "STUDIES", ())}
    for name, run in meta.items():
        named = (one for one in run.get("studies", []) if isinstance(one.get("study"), str))
        own = (one for one in named if one["study"] not in elsewhere)
        by_study = by(own, lambda one: str(one["study"]))
        caption = run_caption(run, name if len(meta) > 1 else "")
        yield from _scale(list(by_study.get(SCALE, ())), caption)
        timed = backends(row for row in rows if row["run"] == name)
        yield from _precision(list(by_study.get(PRECISION, ())), caption, timed)
        for study, found in by_study.items():
            if study not in (SCALE, PRECISION):
                yield _table(study, found, f" ({name})" if len(meta) > 1 else "")
        drawn = drawn or bool(by_study)
    if not drawn:
        yield note(
            "No studies. A scenario requests them with studies: [...]; attnbench list studies names"
            " them."
        )


def _scale(found: Sequence[Finding], caption: str) -> Iterator[Block]:
    """Entropy of the softmax over d_k, with and without the factor."""
    known = [one for one in findings_of(ScoreScale, found) if not one.of]
    panels = [
        panel(
            Group(label="", problem={}, rows=[one.stored() | {"backend": words} for one in some]),
            "d_k",
            "entropy_ratio",
            x_label="width of a head d_k",
            y_label=f"entropy, {words} 1/sqrt(d_k)",
            unit="share",
            y_scale="linear",
        )
        for scaled, words in ((True, "with"), (False, "without"))
        if (
            some := [one for one in known if one.scaled is scaled and one.entropy_ratio is not None]
        )
    ]
    if not panels:
        return
    end, widest = "", max(known, key=lambda one: (one.d_k, not one.scaled))
    if not widest.scaled and widest.entropy_ratio is not None:
        left = f"{100 * widest.entropy_ratio:.0f} % of the highest possible entropy is left"
        end = f": {left} at d_k = {widest.d_k}"
    yield Figure(
        title=f"Without 1/sqrt(d_k) the softmax selects a single key{end}",
        caption=f"{caption} · random queries and keys of variance 1",
        panels=tuple(panels),
        table=_table(SCALE, [one.stored() for one in known], ""),
    )


def _precision(found: Sequence[Finding], caption: str, timed: list[str]) -> Iterator[Block]:
    """Relative error over N, a panel per dtype, for the backends of the run; the table has all."""
    known = [one for one in findings_of(Precision, found) if (one.error_l2_ratio or 0) > 0]
    if not known:
        return
    table = _table(PRECISION, [one.stored() for one in known], "")
    panels, largest = [], []
    for dtype, some in by(known, lambda one: one.dtype).items():
        largest.append(f"{number_text(max(one.error_l2_ratio or 0 for one in some))} in {dtype}")
        rows = [one.stored() for name in timed for one in some if one.backend == name]
        if rows:
            panels.append(
                panel(
                    Group(label="", problem={}, rows=rows),
                    "seq_len",
                    "error_l2_ratio",
                    x_label="sequence length N",
                    y_label=f"relative error, {dtype}",
                    unit="plain",
                )
            )
    if not panels:
        yield table
        return
    yield Figure(
        title=f"Relative errors are at most {list_text(largest)}",
        caption=f"{caption} · forward and gradients, the worse of the two, against float64",
        panels=tuple(panels),
        table=table,
        same_y=False,
    )


def _table(study: str, found: Sequence[Finding], of: str) -> Table:
    columns = tuple(dict.fromkeys(key for one in found for key in one if key != "study"))
    rows = tuple(tuple(entry_cell(one.get(key), cell_text) for key in columns) for one in found)
    return Table(title=f"Findings of {study}{of}", columns=columns, rows=rows, folded=True)
