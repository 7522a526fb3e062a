"""Two settings of one axis compared on otherwise equal problems: time, bytes and counted work.

Every value of an axis against its first one in the plan, per backend: backward against forward,
padding against no mask, 8 key and value heads against 32. One head against more of them has its own
rules (heads.py); heads of a fixed width are here, as then the first has most of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any, Literal

from ..data.row_groups import WIDTHS, Group, Row, axis_text, backends, groups, value_text
from ..data.run_meta import Meta
from ..formatting import STATUS_WORDS, list_text, number_text, ratio_range_text, times_text
from ..ratio import Ratio, time_ratio
from .heads import MARGIN_RATIO, SameTime, equal_time
from .speedup import baseline

CONTRASTED = (
    "passes",
    "mask",
    "causal",
    "kv_heads",
    "heads",
    "kv_seq_len",
    "dtype",
    "window",
    "scope",
    "d_model",
    "d_k",
    "batch",
)
SIZES = ("seq_len", "kv_seq_len", "batch", "d_model")  # sentences are about the largest
MOST_SETTINGS = 2  # of other axes, in a sentence
WHOLE_STEP = "forward+backward"
Word = Literal["same", "more", "less", "undecided"]
_NAMES = {
    "passes": {"forward": "forward", "backward": "backward", WHOLE_STEP: WHOLE_STEP},
    "mask": {"none": "no mask"},
    "scope": {"core": "the core", "layer": "the layer", "block": "the block"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A backend with one value of an axis (`row`) against the first value (`base`).

    `time`: None if either has no latency. The others are exact ratios, NaN without a number.
    """

    axis: str
    backend: str
    row: Row
    base: Row
    time: Ratio | None
    peak_bytes: float
    input_bytes: float
    work_flops: float
    work_exps: float

    @property
    def same_time(self) -> SameTime | None:
        return equal_time(self.time, self.row, self.base)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrasted:
    """The contrasts of one axis of one run, by problem. `asked`: the scenario asks for it."""

    axis: str
    run: str
    lead: str
    asked: bool
    problems: Sequence[tuple[Group, Sequence[Contrast]]]


def contrasted(rows: Sequence[Row], meta: Meta, *, only_asked: bool = False) -> list[Contrasted]:
    """Every axis with something to compare, run by run; those that a scenario asks for first."""
    found = []
    for name, run in meta.items():
        mine = [row for row in rows if row["run"] == name]
        asked = [axis for axis in CONTRASTED if asks_for(run, axis)]
        for axis in asked if only_asked else sorted(CONTRASTED, key=lambda one: one not in asked):
            problems = contrasts(mine, axis)
            if problems:
                timed = {one.backend for _, some in problems for one in some if one.time}
                lead = baseline(run, [row for row in mine if row["backend"] in timed] or mine)
                found.append(
                    Contrasted(
                        axis=axis,
                        run=name,
                        lead=lead or "",
                        asked=axis in asked,
                        problems=problems,
                    )
                )
    return sorted(found, key=lambda one: not one.asked)


def asks_for(run: Mapping[str, Any], axis: str) -> bool:
    """Whether the run's scenario contrasts the axis."""
    asked = run["scenario"].get("contrast")
    return isinstance(asked, list | tuple) and axis in asked


def of_given_width(group: Group) -> bool:
    """Whether more heads of the problem are not narrower ones."""
    return not any(isinstance(group.problem[width], str) for width in WIDTHS)


def contrasts(rows: Sequence[Row], axis: str) -> list[tuple[Group, list[Contrast]]]:
    """Every problem on which some backend ran with one of two values of the axis at least."""
    found: list[tuple[Group, list[Contrast]]] = []
    if len({row.get(axis) for row in rows}) < 2:
        return found
    for group in groups(rows, axis):
        if axis == "heads" and not of_given_width(group):
            continue
        if len({row[axis] for row in group.rows}) < 2:  # such as windows of one mask
            continue
        if some := [one for one in _of_group(group, axis) if _known(one)]:
            found.append((group, some))
    return found


def _of_group(group: Group, axis: str) -> list[Contrast]:
    """By backend; within one, in the order of the plan."""
    first = setting(axis, group.rows[0])
    found = []
    for backend in backends(group.rows):
        by_setting = {
            setting(axis, row): row for row in reversed(group.rows) if row["backend"] == backend
        }
        base = by_setting.pop(first, None)
        if base is None:
            continue
        found += [
            Contrast(
                axis=axis,
                backend=backend,
                row=row,
                base=base,
                time=time_ratio(row, base),
                peak_bytes=_quotient(_bytes(row), _bytes(base)),
                input_bytes=_quotient(row.get("input_bytes"), base.get("input_bytes")),
                work_flops=_quotient(row.get("work_flops"), base.get("work_flops")),
                work_exps=_quotient(row.get("work_exps"), base.get("work_exps")),
            )
            for row in reversed(by_setting.values())
        ]
    return found


def _known(one: Contrast) -> bool:
    """A backend that ran with neither setting has nothing to compare, nor to say."""
    return "ok" in (one.row["status"], one.base["status"])


def _bytes(row: Row) -> float | None:
    """With what is kept between calls, where that is known."""
    needed: float | None = row.get("needed_bytes")
    return row.get("peak_bytes") if needed is None else needed


def _quotient(numerator: float | None, denominator: float | None) -> float:
    return numerator / denominator if numerator is not None and denominator else nan


# ---- words ---------------------------------------------------------------------------------------


def setting(axis: str, row: Row) -> str:
    """A value of an axis in words: `N_kv = 8k`, `no mask`, `local mask, window 64`."""
    value = row.get(axis)
    named = _NAMES.get(axis, {}).get(str(value))
    if named:
        return named
    text = axis_text(axis, value) or value_text(axis, value)
    window = axis_text("window", row.get("window")) if axis == "mask" else ""
    return ", ".join(filter(None, (text, window)))


def word(low: float, high: float) -> Word:
    """Of an exact ratio, or of the interval of one that was measured: within 5 % is the same."""
    edge = 1 + MARGIN_RATIO
    if 1 / edge <= low and high <= edge:
        return "same"
    return "more" if low > edge else "less" if high < 1 / edge else "undecided"


def time_word(found: SameTime | None) -> Word | None:
    """None without a ratio of times."""
    if found is None:
        return None
    if found.answer == "no":
        return "more" if found.value > 1 else "less"
    return "same" if found.answer == "yes" else "undecided"


def time_text(one: Contrast) -> str:
    """`3.10 times the time (2.95 to 3.25)`; with a word if it is the same or undecided."""
    found = one.same_time  # slow
    kind = time_word(found)
    if found is None:
        return f"no time to compare ({one.missing})"
    unpaired = "" if found.ratio.paired else ", unpaired"
    bounds = ratio_range_text(found.low, found.high) or " (no interval)"
    if kind == "same":
        return f"the same time within 5 %: {number_text(found.value)} times{bounds}{unpaired}"
    text = f"{number_text(found.value)} times the time{bounds}{unpaired}"
    return f"{text}, undecided" if kind == "undecided" else text


def bytes_text(one: Contrast) -> str:
    """`2.00 times the peak bytes`; with the inputs where keys and values are shared."""
    kinds = [(one.peak_bytes, "peak bytes")]
    kinds += [(one.input_bytes, "bytes of q, k and v")] if one.axis == "kv_heads" else []
    texts = [
        f"the same {what}" if ratio == 1 else f"{times_text(ratio)} the {what}"
        for ratio, what in kinds
        if isfinite(ratio)
    ]
    return " and ".join(texts)


# ---- the answer of one axis ----------------------------------------------------------------------


def chosen(of: Contrasted) -> list[tuple[Group, list[Contrast]]]:
    """The problems that a sentence is about: whole steps, largest sizes, two settings at most.

    Problems without a time count only if none has one.
    """
    timed = [
        (group, list(some)) for group, some in of.problems if any(one.time for one in some)
    ] or [(group, list(some)) for group, some in of.problems]
    whole = [pair for pair in timed if pair[0].problem.get("passes") == WHOLE_STEP]
    left = whole or timed
    for axis in SIZES:
        sizes = [size for group, _ in left if isinstance(size := group.problem.get(axis), int)]
        if sizes:
            left = [pair for pair in left if pair[0].problem.get(axis) == max(sizes)]
    return left[:MOST_SETTINGS]


def last_of(some: Sequence[Contrast], backend: str) -> Contrast | None:
    """The contrast of a backend that is furthest from the first value, if possible with a time."""
    mine = [one for one in some if one.backend == backend]
    return next((one for one in reversed(mine) if one.time), mine[-1] if mine else None)


def varying(problems: Sequence[tuple[Group, Any]]) -> list[str]:
    """The axes that differ among some problems."""
    first = problems[0][0].problem if problems else {}
    return [
        axis
        for axis in first
        if any(group.problem.get(axis) != first[axis] for group, _ in problems)
    ]


def place(group: Group, axes: Sequence[str]) -> str:
    """Where among chosen problems: `the layer`, `causal`; "" without such axes."""
    texts = []
    for axis in axes:
        if axis == "causal_align" and "causal" in axes:
            continue
        value = group.problem.get(axis)
        text = _NAMES.get(axis, {}).get(str(value)) or axis_text(axis, value)
        texts.append(f"in {text}" if axis == "scope" else text)
    return ", ".join(filter(None, texts))


def answer(of: Contrasted, backend: str = "") -> str:
    """One sentence on the lead backend, or on a given one; "" if it has no such contrast.

    `forward+backward against forward at N = 1k, fused: in the core, 3.10 times the time (2.95 to
    3.25), 2.00 times the peak bytes; in the layer, 2.80 times the time (2.70 to 2.90), ...`.
    """
    name = backend or of.lead
    picked = [
        (group, one) for group, some in chosen(of) if (one := last_of(some, name)) is not None
    ]
    if not picked:
        return ""
    axes = varying(picked)
    parts: list[str] = []
    doubts: dict[str, None] = {}
    is_disturbed = False
    for group, one in picked:
        costs = ", ".join(filter(None, (time_text(one), bytes_text(one))))
        parts.append(", ".join(filter(None, (place(group, axes), costs + _proportion(one)))))
        if one.time is not None and ", undecided" in costs:
            doubts[one.time.noise] = None
            is_disturbed = is_disturbed or (one.time.disturbed and not one.time.noise)
    first = picked[0][1]
    at = axis_text("seq_len", picked[0][0].problem.get("seq_len"))
    if of.axis != "kv_seq_len" and isinstance(picked[0][0].problem.get("kv_seq_len"), int):
        at = axis_text("kv_seq_len", picked[0][0].problem["kv_seq_len"])
    where = f" at {at}" if at else ""
    against = f"{setting(of.axis, first.row)} against {setting(of.axis, first.base)}"
    known = [doubt for doubt in doubts if doubt]
    doubt = f"; the interval allows for {list_text(known)}" if known else ""
    doubt += "; other work disturbed most blocks" if is_disturbed else ""
    return f"{against}{where}, {name}: {'; '.join(parts)}{doubt}"


def _proportion(one: Contrast) -> str:
    """What a cost in proportion to the heads would be, where heads of one width are removed."""
    if one.axis != "heads" or not one.base["heads"]:
        return ""
    return f" ({number_text(one.row['heads'] / one.base['heads'])} would be in proportion)"


def findings(rows: Sequence[Row], meta: Meta) -> list[str]:
    """A sentence per axis that a scenario asks for, and run."""
    asked = contrasted(rows, meta, only_asked=True)
    several = len({one.run for one in asked}) > 1
    texts = ((one, answer(one)) for one in asked)
    return [f"For {one.run}: {text}" if several else text for one, text in texts if text]
