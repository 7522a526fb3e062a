"""How much devices of one kind differ: the same groups of cases, measured on several of them.

`attnbench run --replicate 2` plans every group twice. Copies on two devices give the spread between
devices; copies on one device only say by how much a repetition differs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import exp, isfinite, log, nan
from statistics import fmean
from typing import Any

from ...harness.stats.contrasts import Spread, spread, unpaired_contrast
from ...harness.stats.intervals import CONFIDENCE, Interval, mean_interval
from ...harness.stats.wide_intervals import ratio_says_nothing
from ..data.processor_time import disturbed, in_most
from ..data.row_groups import AXES, COPY, Row, by, label, problem, varying_axes
from ..data.run_meta import Meta
from ..formatting import UNCERTAIN, Number, list_text, number_text, plural, ratio_bounds_text
from ..ratio import noise_of
from ..words import Word, word_of
from .verdict import DEFAULT_MARGIN

MARGIN_RATIO = DEFAULT_MARGIN["latency"]
UUID_DIGITS = 8
FEWEST_DEVICES = 3  # of two, their ratio says all


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What measured a row. `identity`: a GPU's UUID, on whichever host; the host of a CPU."""

    identity: str
    name: str
    host: str = field(compare=False)
    uuid: str = field(compare=False)

    @property
    def label(self) -> str:
        """`GPU 1a2b3c4d on node1`, `node1`."""
        if not self.uuid:
            return self.host
        kind, _, digits = self.uuid.partition("-")  # GPU-1a2b3c4d-..., MIG-...
        short = f"{kind} {digits[:UUID_DIGITS]}"
        return f"{short} on {self.host}" if self.host else short


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRatio:
    """A case on two devices: the time on the second over that on the first, with the two rows.

    The interval has what processes of one device differ by, not how its speed drifts with time.
    """

    base: Row
    new: Row
    ratio: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePair:
    """Two devices. `ratio`: time on `new`, the slower one, over time on `base`: the geometric mean
    over groups, with an interval over groups. `contended`, `throttled`: most blocks of the slower
    device were, and not those of the faster.
    """

    base: Device
    new: Device
    groups: int
    ratio: Interval
    contended: bool = False
    throttled: bool = False

    @property
    def word(self) -> Word:
        """By the margin; what other work alone could explain is not decided."""
        word = word_of(self.ratio.low, self.ratio.high, MARGIN_RATIO)
        return "not decided" if word == "more" and self.contended else word


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """Copies on one device. `ratio`: a later copy over the first, geometric mean over `groups`;
    `spread`: of equal measurements; None without two copies of a group.
    """

    device: Device | None
    groups: int
    ratio: Interval
    spread: Spread | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """What the copies of a run say. `devices`: those of timed copies, with their number of cases;
    `unnamed`: timed copies whose row does not tell the device; `pairs`: the one that differs most
    first, and `cases` its cases; `between`: of any two devices; `absent`: cases without a second
    copy in this run.
    """

    run: str
    copies: int
    devices: Mapping[Device, int]
    unnamed: int
    pairs: Sequence[DevicePair]
    cases: Sequence[CaseRatio]
    between: Spread | None
    repeats: Sequence[Repeats]
    absent: int

    @property
    def spread(self) -> DevicePair | None:
        """The device-to-device spread: the slowest device of a kind over the fastest."""
        return self.pairs[0] if self.pairs else None


def device_of(row: Row) -> Device | None:
    """None if the row does not tell it from others: no host, or a GPU without a UUID."""
    host, uuid, name = (row.get(fact) or "" for fact in ("host", "device_uuid", "device_name"))
    uuid = uuid if row.get("device") == "cuda" else ""
    identity = uuid if row.get("device") == "cuda" else host
    return Device(identity=identity, name=name, host=host, uuid=uuid) if identity else None


def copies_of(rows: Sequence[Row], meta: Meta) -> list[Copies]:
    """Of each run that has copies; `rows` with all of them."""
    copies = by((row for row in rows if row.get(COPY) is not None), lambda row: str(row["run"]))
    return [_copies(name, run, copies[name]) for name, run in meta.items() if name in copies]


# ---- by group ------------------------------------------------------------------------------------


Case = tuple[Any, ...]
Group = Mapping[Device | None, Mapping[Case, Sequence[Row]]]
"""The timed copies of a group: by device, then by case."""


def _copies(name: str, run: Mapping[str, Any], rows: Sequence[Row]) -> Copies:
    originals = {
        one["case"]: one.get("replica_of", one.get("group")) for one in run.get("cases") or ()
    }
    timed = [row for row in rows if row["status"] == "ok" and (row.get("latency_ms") or 0) > 0]
    groups = [
        {device: by(mine, _case) for device, mine in by(some, device_of).items()}
        for some in by(timed, lambda row: originals.get(row["case"], row["case"])).values()
    ]
    counts = Counter(map(device_of, timed))
    unnamed = counts.pop(None, 0)
    devices = {one: counts[one] for one in sorted(filter(None, counts), key=lambda one: one.label)}
    pairs = _pairs(groups)
    return Copies(
        run=name,
        copies=max(row[COPY] for row in rows),
        devices=devices,
        unnamed=unnamed,
        pairs=[_with_doubts(pairs[0], timed), *pairs[1:]] if pairs else [],
        cases=_case_ratios(pairs[0], groups) if pairs else (),
        between=_between(groups),
        repeats=[
            one
            for device in (*devices, *([None] if unnamed else []))
            if (one := _repeats(device, groups))
        ],
        absent=sum(count < 2 for count in Counter(map(_case, rows)).values()),
    )


def _case(row: Row) -> Case:
    return row["backend"], *(row.get(axis) for axis in AXES)


def _means(sides: Iterable[Mapping[Any, Iterable[Row]]]) -> list[float]:
    """The mean logarithm of the times of each side, over the cases that all have; empty if none."""
    logs = [
        {case: fmean(log(row["latency_ms"]) for row in rows) for case, rows in side.items()}
        for side in sides
    ]
    shared = set.intersection(*map(set, logs)) if logs else set[Any]()
    return [fmean(side[case] for case in shared) for side in logs] if shared else []


def _named(group: Group) -> list[Device]:
    """The devices that measured a case of it, in one order for all groups."""
    return sorted(filter(None, group), key=lambda one: one.identity)


def _pairs(groups: Sequence[Group]) -> list[DevicePair]:
    """All pairs of one kind with a group in common, each as slower over faster, worst first.

    The interval of each allows for their number (Bonferroni): one in 20 runs has a wrong one.
    """
    logs: dict[tuple[Device, Device], list[float]] = {}
    for group in groups:
        for base, new in combinations(_named(group), 2):
            means = _means([group[base], group[new]])
            if means and base.name == new.name:
                logs.setdefault((base, new), []).append(means[1] - means[0])
    level = 1 - (1 - CONFIDENCE) / max(1, len(logs))
    found = []
    for pair, ratios in logs.items():
        sign = 1 if fmean(ratios) >= 0 else -1
        fast, slow = pair[::sign]
        mean = mean_interval([sign * one for one in ratios], "group", level)
        found.append(DevicePair(base=fast, new=slow, groups=len(ratios), ratio=mean.mapped(exp)))
    return sorted(found, key=lambda one: -one.ratio.value)


def _with_doubts(pair: DevicePair, rows: Sequence[Row]) -> DevicePair:
    """What happened in most blocks of the slower device explains why it is slower, unless it did on
    the faster one too.
    """

    def mostly(blocks: str, device: Device) -> bool:
        mine = [row for row in rows if device_of(row) == device]
        return in_most(*(sum(row.get(name) or 0 for row in mine) for name in (blocks, "blocks")))

    contended, throttled = (
        mostly(blocks, pair.new) and not mostly(blocks, pair.base)
        for blocks in ("contended_blocks", "throttled_blocks")
    )
    return replace(pair, contended=contended, throttled=throttled)


def _between(groups: Sequence[Group]) -> Spread | None:
    """Of measurements on any two devices of one kind; None with fewer than three devices.

    Its degrees of freedom are those of the devices: more groups know no more devices.
    """
    by_group = [_means(group[one] for one in _named(group)) for group in groups]
    learnt = spread([means for means in by_group if len(means) > 1])
    devices = {device for group in groups for device in _named(group)}
    if learnt is None or len(devices) < FEWEST_DEVICES or len({one.name for one in devices}) > 1:
        return None
    return Spread(sd=learnt.sd, degrees=min(learnt.degrees, len(devices) - 1))


def _case_ratios(pair: DevicePair, groups: Iterable[Group]) -> list[CaseRatio]:
    """One per case and pair of copies, the largest difference first."""
    found = [
        CaseRatio(base=before, new=now, ratio=_case_ratio(before, now))
        for group in groups
        for case, olds in group.get(pair.base, {}).items()
        for before, now in product(olds, group.get(pair.new, {}).get(case, ()))
    ]
    return sorted(found, key=lambda one: -abs(log(one.ratio.value)))


def _case_ratio(base: Row, new: Row) -> Interval:
    """Of two devices: their runs are no reason to differ."""
    try:
        contrast = unpaired_contrast(new["block_ms"], base["block_ms"])
    except (TypeError, ValueError):
        ratio = new["latency_ms"] / base["latency_ms"]
        return Interval(value=ratio, low=nan, high=nan, units=0, reason="no samples")
    one_process, is_disturbed = bool(contrast.reason), disturbed(base, new)
    noisy = noise_of(new).in_contrast(
        contrast, one_process=one_process, other_run=False, disturbed=is_disturbed
    )
    return noisy.interval()


def _repeats(device: Device | None, groups: Iterable[Group]) -> Repeats | None:
    logs = []
    for group in groups:
        rows = [row for some in group.get(device, {}).values() for row in some]
        by_copy = sorted(by(rows, lambda row: int(row[COPY])).items())
        means = _means({_case(row): [row] for row in some} for _, some in by_copy)
        if len(means) > 1:
            logs.append(means)
    if not logs:
        return None
    later = [fmean(means[1:]) - means[0] for means in logs]
    return Repeats(
        device=device,
        groups=len(logs),
        ratio=mean_interval(later, "group").mapped(exp),
        spread=spread(logs),
    )


# ---- in sentences --------------------------------------------------------------------------------


def finding(found: Copies) -> str:
    """One sentence: whether devices differ, or why that is not known."""
    pair = found.spread
    if pair is None:
        return _unknown(found)
    said = (
        f"{pair.new.label} takes {interval_text(pair.ratio)} as long as {pair.base.label}, over"
        f" {plural(pair.groups, 'group')} of cases"
    )
    count = plural(len(found.devices), "device")
    margin = f"{100 * MARGIN_RATIO:g} %"
    if pair.throttled:
        said += "; the slower one was throttled in most blocks"
    if pair.word == "more":
        return f"{count} of one kind differ by more than {margin}: {said}"
    if pair.word == "same":
        return f"{count} of one kind agree within {margin}: {said}"
    why = "other work competed for the cores of the slower one, so " if pair.contended else ""
    return f"{said}; {why}that they differ by more than {margin} is not confirmed"


def spread_text(pair: DevicePair) -> str:
    """`3.4 % (2.9 to 4.0 %)`: the slower device over the faster, less 1."""
    ratio = pair.ratio
    text = f"{number_text(100 * (ratio.value - 1))} %"
    if not (isfinite(ratio.low) and isfinite(ratio.high)):
        return f"{text} ({ratio.reason})"
    if ratio_says_nothing(ratio.low, ratio.high):
        return f"{text} ({UNCERTAIN})"
    low, high = (number_text(100 * (bound - 1)) for bound in (ratio.low, ratio.high))
    return f"{text} ({low} to {high} %)"


def interval_text(ratio: Interval) -> str:
    """`1.034 times (1.029 to 1.040)`, or the reason why there is no interval."""
    return ratio_text(ratio).replace(" (", " times (", 1)


def ratio_text(ratio: Interval) -> str:
    """`1.034 (1.029 to 1.040)`: devices differ by so little that two digits are too few."""
    said = ratio_bounds_text(ratio.low, ratio.high, _ratio) or ratio.reason
    return Number(f"{_ratio(ratio.value)} ({said})")


def repeats_text(found: Repeats) -> str:
    """One sentence on copies that one device measured."""
    where = "one device that the rows do not name" if found.device is None else found.device.label
    text = (
        f"Measured again on {where}, cases took {interval_text(found.ratio)} as long, over"
        f" {plural(found.groups, 'group')}"
    )
    if found.spread is None:
        return text
    within = number_text(100 * found.spread.ratio)
    return f"{text}; 95 % of two such measurements lie within {within} %"


def problem_text(one: CaseRatio, of: Copies) -> str:
    """`N = 4k, h = 8`: by the axes that vary."""
    axes = varying_axes([problem(case.new) for case in of.cases]) or ["seq_len"]
    return label(problem(one.new), axes)


def _unknown(found: Copies) -> str:
    """Why no spread between devices is known."""
    if found.unnamed and not found.devices:
        return "The rows do not say which devices measured the copies"
    if found.repeats and len(found.devices) < 2:
        where = list_text([device.label for device in found.devices])
        if found.unnamed:
            return "Not every copy says which device measured it: no spread of devices is known"
        known = "how much devices differ is not known"
        return f"All copies were measured on one device, {where}: {known}"
    if len({device.name for device in found.devices}) > 1:
        return "The copies were measured on devices of different kinds, which are not compared"
    if found.absent:
        return (
            f"{plural(found.absent, 'case has', 'cases have')} one copy in this run only: merge the"
            " shards to compare devices"
        )
    return "No case was timed on two devices: how much devices differ is not known"


def _ratio(value: float) -> str:
    return f"{value:.3f}" if 0.1 <= value < 10 else number_text(value)
