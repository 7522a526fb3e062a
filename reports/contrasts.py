"""Two settings of one axis compared on otherwise equal problems: time, bytes and counted work.

Every value of an axis against its base, per backend: backward against forward, padding against no
mask, 8 key and value heads against 32. The base is the first value in the plan; of heads that share
d_model it is one head.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, log
from operator import itemgetter
from typing import Any

from .data.row_groups import (
    FOLLOWERS,
    WIDTHS,
    Group,
    Row,
    axis_text,
    by,
    follows,
    groups,
    value_text,
)
from .formatting import STATUS_WORDS, kernel_text, plural
from .judging.over import cases_of, over
from .judging.pair import time_ratio
from .judging.ratio import Ratio, count_ratio

WHOLE_STEP = "forward+backward"
NAMES = {
    "passes": {"forward": "forward", "backward": "backward", WHOLE_STEP: WHOLE_STEP},
    "mask": {"none": "no mask"},
    "softcap": {"0.0": "no softcap"},
    "sinks": {"False": "no sinks"},
    "latent": {"0": "stored keys and values"},
    "rope": {"0": "no rope"},
    "page": {"0": "no pages"},
    "kv_dtype": {"same": "plain keys and values"},
    "prefix": {"0": "no shared prefix"},
    "scope": {"core": "the core", "layer": "the layer", "block": "the block"},
}
KERNELS = {"cudnn": "cuDNN"}
"""Kernels with a name of their own; others are options of torch."""
GIVEN = ("lengths", "causal_align")  # axes that not every problem has
ONE_HEAD = axis_text("heads", 1)


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A backend with one value of an axis (`row`) against its base."""

    axis: str
    row: Row
    base: Row

    @property
    def backend(self) -> str:
        return str(self.row["backend"])

    @property
    def heads(self) -> int:
        return int(self.row["heads"])

    @cached_property
    def time(self) -> Ratio | None:
        """Its word is that of an equivalence test; None if either has no latency."""
        return time_ratio(self.row, self.base)

    @property
    def throughput(self) -> Ratio | None:
        """Tokens per second of a batch over those of its base; None along other axes."""
        if self.axis != "batch" or (time := self.time) is None:
            return None
        more = self.row["batch"] / self.base["batch"]
        value, low, high = (more / end for end in (time.value, time.high, time.low))
        return replace(time, value=value, low=low, high=high)

    @property
    def peak_bytes(self) -> float:
        """With what is kept between calls, where that is known; NaN without a number."""
        kept = self.counted("needed_bytes")
        return kept if isfinite(kept) else self.counted("peak_bytes")

    def counted(self, column: str) -> float:
        """An exact ratio, NaN without a number."""
        return count_ratio(self.row.get(column), self.base.get(column))

    @property
    def kernels(self) -> str:
        """`sdpa used its efficient kernel with 1 head and cuDNN with 8: this compares kernels`;
        "" if both sides ran the same one, or one is not known.
        """
        base, ours = (
            kernel_text(row.get("kernel"), row.get("kernel_generation"))
            for row in (self.base, self.row)
        )
        if not (base and ours) or base == ours:
            return ""
        if self.axis == "heads":
            with_base, with_ours = plural(int(self.base["heads"]), "head"), str(self.heads)
        else:
            with_base, with_ours = (setting(self.axis, row) for row in (self.base, self.row))
        first, second = (KERNELS.get(name, name) for name in (base, ours))
        return (
            f"{self.backend} used its {first} kernel with {with_base} and {second} with"
            f" {with_ours}: this compares kernels"
        )

    @property
    def of_heads(self) -> bool:
        """Whether it tells what the setting costs: not if more heads ran another kernel."""
        return self.axis != "heads" or not self.kernels

    @property
    def distance(self) -> float:
        """How far from the base: by which factor, on the log scale; 0 if it is no size."""
        ours, base = self.row[self.axis], self.base[self.axis]
        known = isinstance(ours, int) and isinstance(base, int) and ours > 0 < base
        return abs(log(ours / base)) if known else 0.0

    @property
    def is_known(self) -> bool:
        """It has a time or bytes."""
        return self.time is not None or isfinite(self.peak_bytes)

    @property
    def missing(self) -> str:
        """Why there is no ratio of times: `out of memory with N_kv = 8k`."""
        sides = (self.row, self.base)
        lacking = next((side for side in sides if side.get("latency_ms") is None), None)
        if lacking is None:
            return ""
        status = lacking["status"]
        why = "not timed" if status == "ok" else STATUS_WORDS.get(status, status)
        return f"{why} with {setting(self.axis, lacking)}"

    @property
    def against(self) -> str:
        """`padding mask against no mask`, `8 heads against one`."""
        if self.axis == "heads":
            base = int(self.base["heads"])
            return f"{plural(self.heads, 'head')} against {'one' if base == 1 else base}"
        return f"{setting(self.axis, self.row)} against {setting(self.axis, self.base)}"


def contrasts(rows: Sequence[Row], axis: str) -> list[tuple[Group, list[Contrast]]]:
    """Every problem on which some backend ran with one of two values of the axis at least."""
    found = [
        group
        for group in _of_two_values(rows, axis)
        # of heads that share d_model against_one_head has it
        if axis != "heads" or of_given_width(group) or 1 not in group.by_value(axis)
    ]
    return _against(found, axis, failed=False)


def _of_two_values(rows: Sequence[Row], axis: str) -> Iterator[Group]:
    """The problems that have two values of an axis. A size that usually follows another one keeps
    its number where two rows are equal only so: 4 key and value heads of 4 heads and of 8.
    """
    known = [row for row in rows if row.get(axis) not in ((None, "") if axis in GIVEN else (None,))]
    if len({row[axis] for row in known}) < 2 or follows(known, axis):
        return
    sizes = [one for one in FOLLOWERS if one != axis]
    left = {id(row) for row in known}
    for given in ((), *((one,) for one in sizes), sizes):
        for group in groups(known, axis, given) if left else ():
            here = {id(row) for row in group.rows}
            if here & left and len({row[axis] for row in group.rows}) > 1:
                left -= here
                yield group


def against_one_head(rows: Sequence[Row]) -> list[tuple[Group, list[Contrast]]]:
    """Every problem on which some backend has one head and more, in order of the heads.

    Problems with the most measured backends come first, then the longest.
    """
    several = [group for group in groups(rows, "heads") if len(group.by_value("heads")) > 1]
    found = [
        (group, sorted(some, key=lambda one: one.heads))
        for group, some in _against(several, "heads", ONE_HEAD)
        if most_heads(some)
    ]
    return sorted(
        found, key=lambda pair: (-len(most_heads(pair[1])), -(pair[0].problem["seq_len"] or 0))
    )


def most_heads(some: Sequence[Contrast]) -> list[Contrast]:
    """Per backend the comparison with the most heads that has a time or bytes."""
    return list({one.backend: one for one in some if one.is_known}.values())


def asks_for(run: Mapping[str, Any], axis: str) -> bool:
    """Whether the run's scenario contrasts the axis."""
    asked = run["scenario"].get("contrast")
    return isinstance(asked, list | tuple) and axis in asked


def of_given_width(group: Group) -> bool:
    """Whether more heads of the problem are not narrower ones."""
    return not any(isinstance(group.problem[width], str) for width in WIDTHS)


def setting(axis: str, row: Row) -> str:
    """A value of an axis in words: `N_kv = 8k`, `no mask`, `local mask, window 64`."""
    value = row.get(axis)
    named = NAMES.get(axis, {}).get(str(value))
    if named:
        return named
    text = axis_text(axis, value) or value_text(axis, value)
    window = axis_text("window", row.get("window")) if axis == "mask" else ""
    return ", ".join(filter(None, (text, window)))


def _against(
    found: Sequence[Group], axis: str, base: str = "", *, failed: bool = True
) -> list[tuple[Group, list[Contrast]]]:
    """By backend; within one, in the order of the plan. `base`: a setting, else the first one.
    `failed`: also of backends that ran with neither, which have nothing to compare, nor to say.
    """
    rows = [row for group in found for row in group.rows]
    if not rows:
        return []
    problems = [number for number, group in enumerate(found) for _ in group.rows]
    settings = [setting(axis, row) for row in rows]
    cases = cases_of(rows, ["backend", "status"], problem=problems, setting=settings)
    by_backend = cases.groupby(["problem", "backend"], sort=False).ngroup().argsort(kind="stable")
    cases = cases.iloc[by_backend].drop_duplicates(["problem", "backend", "setting"])
    is_base = cases["setting"] == (base or cases.groupby("problem")["setting"].transform("first"))
    pairs = over(cases[~is_base], cases[is_base], ["problem", "backend"])
    ran = (pairs[["status", "status_base"]] == "ok").any(axis=1)
    told = pairs[ran | failed][["problem", "row", "row_base"]].to_numpy().tolist()
    return [
        (found[number], [Contrast(axis=axis, row=row, base=base) for _, row, base in some])
        for number, some in by(told, itemgetter(0)).items()
    ]
