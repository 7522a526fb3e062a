"""Runs as one tidy frame, a row per case; which axes tell its problems apart, and their names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...harness.rows.model import AXES as PROBLEM_AXES
from .columns import DTYPES, NESTED, dtype_of
from .read import Run
from .row_groups import AXES, Row, axis_text, axis_title, once, problem

if TYPE_CHECKING:
    import pandas as pd  # a third of a second, which runs without a frame do without

FIRST = ("run", "device", "python", "seq_len", "heads", "batch", "d_model")
"""Axes that others follow, rather than the other way round."""


def as_frame(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    kinds: Mapping[str, str],
    run: Run | None = None,
) -> "pd.DataFrame":
    """Rows as a frame. `kinds`: the columns' types; of others their values say it. `run`: the one
    that all are of: in `attrs`, in place of a column.
    """
    import pandas as pd

    series = {}
    for name in (one for one in columns if run is None or one != "run"):
        values = [row.get(name) for row in rows]
        series[name] = pd.Series(values, dtype=kinds.get(name) or dtype_of(values))
    # a block of all floats: with more than 100 blocks pandas 2 warns who adds a column
    frame = pd.DataFrame(series).copy()
    frame.attrs = {} if run is None else {"run": run.meta["run"]}
    return frame


def cases(rows: Sequence[Row]) -> "pd.DataFrame":
    """A line per row: the columns of `attnbench.load` that hold one value, each in its type, and
    `row`, the row itself with its samples, which the judge takes.
    """
    return once(rows, "cases", lambda: _cases(rows)).copy()


def _cases(rows: Sequence[Row]) -> "pd.DataFrame":
    import pandas as pd

    every = dict.fromkeys((*DTYPES, *(rows[0] if rows else ())))
    names = [name for name in every if DTYPES.get(name) != NESTED]
    return as_frame(rows, names, DTYPES).assign(row=pd.Series([*rows], dtype=NESTED))


def records(frame: "pd.DataFrame") -> list[Row]:
    """Its lines, None for what is missing."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [dict(zip(plain.columns, line, strict=True)) for line in plain.to_numpy().tolist()]


def problems(cases: "pd.DataFrame", given: Sequence[str] = ()) -> "pd.DataFrame":
    """The axes of each case. A size that has its usual value has that one's name, such as "d_model
    /h", but for those that are `given`.
    """
    import pandas as pd

    named = [problem(row) | {axis: row.get(axis) for axis in given} for row in cases["row"]]
    return pd.DataFrame(named, index=cases.index, columns=[*AXES], dtype=object)


def varying(of: "pd.DataFrame") -> list[str]:
    """The axes in which problems differ; a detail, such as the corner of a mask, only if those that
    have it do.
    """
    details = {name for name, axis in PROBLEM_AXES.items() if axis.goes_with}
    found = {axis: {*of[axis]} - ({None, "", 0} if axis in details else set()) for axis in of}
    return [str(axis) for axis, values in found.items() if len(values) > 1]


def independent(cases: "pd.DataFrame") -> list[str]:
    """The axes that tell problems apart: each varies, and is no function of those before it, FIRST
    ones first. N if there is only one problem.
    """
    of = problems(cases).drop_duplicates()
    kept: list[str] = []
    for axis in sorted(varying(of), key=lambda axis: [*FIRST, axis].index(axis)):
        if not kept or of.groupby(kept, dropna=False)[axis].nunique(dropna=False).max() > 1:
            kept.append(axis)
    return [axis for axis in AXES if axis in kept] or ["seq_len"]


def place(problem: Mapping[str, Any], axes: Sequence[str]) -> str:
    """`N = 1k, h = 8`, of a problem or a case."""
    return ", ".join(filter(None, (axis_text(axis, problem[axis]) for axis in axes)))


def following(cases: "pd.DataFrame") -> str:
    """What varies and follows from the axes that name problems, for captions: `B = 8 at N = 512, B
    = 4 at N = 1k`; "" if nothing does.
    """
    return "; ".join(_following(problems(cases).drop_duplicates(), independent(cases)))


def _following(of: "pd.DataFrame", axes: Sequence[str]) -> Iterator[str]:
    for axis in varying(of):
        if axis not in axes:
            by = next(([one] for one in axes if _follows(of, axis, [one])), [*axes])
            first = records(of.drop_duplicates([*by, axis]))
            texts = [f"{axis_text(axis, one[axis])} at {place(one, by)}" for one in first]
            many = f"{axis_title(axis)} follows {', '.join(map(axis_title, by))}"
            yield ", ".join(texts) if len(texts) <= 3 else many


def _follows(of: "pd.DataFrame", axis: str, by: Sequence[str]) -> bool:
    return bool(of.groupby([*by], dropna=False)[axis].nunique(dropna=False).max() == 1)
