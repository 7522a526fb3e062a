"""From axes to problems: pure functions; only Problem checks the values."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from ...impls.problem import Problem, windowed
from ..cases.case import placeholder_seq_len

# Cases are planned in this order of the axes.
ORDER: tuple[str, ...] = tuple(Problem.__dataclass_fields__)
REQUIRED = ("seq_len", "d_model", "heads")

AxisValues = Mapping[str, tuple[Any, ...]]
Values = dict[str, Any]


def is_complete(axes: AxisValues) -> bool:
    """Whether the grid has problems of its own; else it only gives values to explicit cases."""
    return all(axes.get(axis) for axis in REQUIRED)


def grid_size(axes: AxisValues) -> int:
    return prod(len(values) for values in axes.values()) if is_complete(axes) else 0


def combinations(axes: AxisValues, contrast: Iterable[str]) -> Iterator[tuple[Values, ...]]:
    """One group per combination of the other axes: all combinations of the contrast axes."""
    if not is_complete(axes):
        return
    inner = [axis for axis in axes if axis in set(contrast)]
    outer = [axis for axis in axes if axis not in inner]
    for fixed in product(*(axes[axis] for axis in outer)):
        yield tuple(
            drop_inapplicable(
                {**dict(zip(outer, fixed, strict=True)), **dict(zip(inner, varied, strict=True))},
                some_causal=True in axes["causal"],
                some_windowed=any(map(windowed, axes["mask"])),
            )
            for varied in product(*(axes[axis] for axis in inner))
        )


def wall_values(axes: AxisValues) -> Iterator[Values]:
    """Every combination of the axes other than seq_len, at a placeholder length."""
    others = {axis: values for axis, values in axes.items() if axis != "seq_len"}
    for kv_seq_len in others.get("kv_seq_len", (None,)):
        fixed = {} if kv_seq_len is None else {"kv_seq_len": (kv_seq_len,)}
        length = {"seq_len": (placeholder_seq_len(kv_seq_len),)}
        for (values,) in combinations(others | fixed | length, ()):
            yield values


def case_values(case: Values, axes: AxisValues) -> Values:
    """An explicit case with the values that it takes from the grid.

    Raises ValueError if the grid has several values for an axis, or if a required axis is missing.
    """
    missing = [axis for axis in axes if axis not in case]
    for axis in missing:
        if len(axes[axis]) > 1:
            raise ValueError(
                f"{axis} is not given, and the grid has {len(axes[axis])} values of it; wanted one;"
                f" give {axis} in the case"
            )
    for axis in REQUIRED:
        if axis not in case and axis not in axes:
            raise ValueError(
                f"{axis} is missing; wanted seq_len, d_model and heads; give {axis} in the case or"
                " in the grid"
            )
    return drop_inapplicable(
        {**{axis: axes[axis][0] for axis in missing}, **case},
        some_causal="causal_align" not in case,
        some_windowed="window" not in case,
    )


def drop_inapplicable(values: Values, *, some_causal: bool, some_windowed: bool) -> Values:
    """Remove an alignment or a window that was meant for other problems of the grid."""
    if some_causal and not values["causal"]:
        values.pop("causal_align", None)
    if some_windowed and not windowed(values["mask"]):
        values.pop("window", None)
    return values


def unique(groups: Iterable[tuple[Values, ...]]) -> tuple[list[tuple[Problem, ...]], int]:
    """The problems of each group without repetitions, and how many repetitions there were.

    Raises ValueError for values that are no problem.
    """
    seen: set[Problem] = set()
    kept: list[tuple[Problem, ...]] = []
    duplicates = 0
    for group in groups:
        problems = dict.fromkeys(Problem(**values) for values in group)
        fresh = tuple(problem for problem in problems if problem not in seen)
        duplicates += len(group) - len(fresh)
        seen.update(fresh)
        if fresh:
            kept.append(fresh)
    return kept, duplicates
