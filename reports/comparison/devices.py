"""How much devices of one kind differ: the same groups of cases, measured on several of them.

`attnbench run --replicate 2` plans every group twice. Copies on two devices give the spread between
devices; copies on one device only say by how much a repetition differs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import exp, log, nan
from statistics import fmean
from typing import Any, Literal

from ...harness.stats.contrasts import Spread, spread, unpaired_contrast
from ...harness.stats.intervals import CONFIDENCE, Interval, mean_interval
from ..data.row_groups import AXES, COPY, Row
from ..data.run_meta import Meta
from ..ratio import disturbed, in_most, noise_of
from .verdict import DEFAULT_MARGIN, SAME, UNDECIDED, verdict_of

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
    def verdict(self) -> Literal["differ", "same", "undecided"]:
        """By the margin; what other work alone could explain is undecided."""
        found = verdict_of(self.ratio.low, self.ratio.high, MARGIN_RATIO, "latency")
        if found == SAME:
            return "same"
        return "undecided" if found == UNDECIDED or self.contended else "differ"


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


@dataclass(slots=True)
class _Timed:
    """The timed copies of a group by case, then by device."""

    rows: dict[tuple[Any, ...], dict[Device | None, list[Row]]] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        case = row["backend"], *(row.get(axis) for axis in AXES)
        self.rows.setdefault(case, {}).setdefault(device_of(row), []).append(row)

    @property
    def devices(self) -> list[Device]:
        """Those that measured a case of it, in one order for all groups."""
        found = {device for on in self.rows.values() for device in on if device is not None}
        return sorted(found, key=lambda one: one.identity)

    def on_each(self) -> list[float]:
        """The mean logarithm on each device, over the cases that all of them measured."""
        devices = self.devices
        shared = [on for on in self.rows.values() if all(device in on for device in devices)]
        return [
            fmean(fmean(map(_log_ms, on[device])) for on in shared)
            for device in (devices if shared else ())
        ]

    def log_ratio(self, new: Device, base: Device) -> float | None:
        """Mean over the cases that both devices measured."""
        logs = [
            fmean(map(_log_ms, on[new])) - fmean(map(_log_ms, on[base]))
            for on in self.rows.values()
            if new in on and base in on
        ]
        return fmean(logs) if logs else None

    def repeated(self, device: Device | None) -> list[float]:
        """Mean logarithm of each copy on one device, over the cases that all of them measured."""
        by_copy: dict[int, dict[int, float]] = {}
        for number, on in enumerate(self.rows.values()):
            for row in on.get(device, ()):
                by_copy.setdefault(row[COPY], {})[number] = _log_ms(row)
        shared = set.intersection(*map(set, by_copy.values())) if by_copy else set[int]()
        if len(by_copy) < 2 or not shared:
            return []
        return [fmean(one[case] for case in shared) for _, one in sorted(by_copy.items())]


def device_of(row: Row) -> Device | None:
    """None if the row does not tell it from others: no host, or a GPU without a UUID."""
    host, uuid, name = (row.get(fact) or "" for fact in ("host", "device_uuid", "device_name"))
    uuid = uuid if row.get("device") == "cuda" else ""
    identity = uuid if row.get("device") == "cuda" else host
    return Device(identity=identity, name=name, host=host, uuid=uuid) if identity else None


def copies_of(rows: Sequence[Row], meta: Meta) -> list[Copies]:
    """Of each run that has copies; `rows` with all of them."""
    found = []
    for name, run in meta.items():
        mine = [row for row in rows if row["run"] == name and row.get(COPY) is not None]
        if mine:
            found.append(_copies(name, run, mine))
    return found


def _copies(name: str, run: Mapping[str, Any], rows: Sequence[Row]) -> Copies:
    originals = {
        one["case"]: one.get("replica_of", one.get("group")) for one in run.get("cases") or ()
    }
    groups: dict[Any, _Timed] = {}
    counts: dict[Device, int] = {}
    seen: dict[tuple[Any, ...], int] = {}
    unnamed = 0
    for row in rows:
        case = row["backend"], *(row.get(axis) for axis in AXES)
        seen[case] = seen.get(case, 0) + 1
        if row["status"] != "ok" or not (row.get("latency_ms") or 0) > 0:
            continue
        groups.setdefault(originals.get(row["case"], row["case"]), _Timed()).add(row)
        if (device := device_of(row)) is None:
            unnamed += 1
        else:
            counts[device] = counts.get(device, 0) + 1
    devices = dict(sorted(counts.items(), key=lambda one: one[0].label))
    where = [*devices, *([None] if unnamed else [])]
    timed = list(groups.values())
    pairs = _pairs(timed)
    if pairs:
        pairs[0] = _with_doubts(pairs[0], timed)
    return Copies(
        run=name,
        copies=max(row[COPY] for row in rows),
        devices=devices,
        unnamed=unnamed,
        pairs=pairs,
        cases=_case_ratios(pairs[0], timed) if pairs else (),
        between=_between(timed),
        repeats=[one for device in where if (one := _repeats(device, groups.values()))],
        absent=sum(count < 2 for count in seen.values()),
    )


def _pairs(groups: Sequence[_Timed]) -> list[DevicePair]:
    """All pairs of one kind with a group in common, each as slower over faster, worst first.

    The interval of each allows for their number (Bonferroni): one in 20 runs has a wrong one.
    """
    logs: dict[tuple[Device, Device], list[float]] = {}
    for group in groups:
        for base, new in combinations(group.devices, 2):
            ratio = group.log_ratio(new, base)
            if ratio is not None and base.name == new.name:
                logs.setdefault((base, new), []).append(ratio)
    level = 1 - (1 - CONFIDENCE) / max(1, len(logs))
    found = []
    for (base, new), ratios in logs.items():
        sign = 1 if fmean(ratios) >= 0 else -1
        fast, slow = (base, new)[::sign]
        mean = mean_interval([sign * one for one in ratios], "group", level)
        found.append(DevicePair(base=fast, new=slow, groups=len(ratios), ratio=_as_ratio(mean)))
    return sorted(found, key=lambda one: -one.ratio.value)


def _with_doubts(pair: DevicePair, groups: Sequence[_Timed]) -> DevicePair:
    def mostly(blocks: str) -> bool:
        """Whether that explains why the slower device is slower."""
        slow, fast = (
            [row for group in groups for on in group.rows.values() for row in on.get(device, ())]
            for device in (pair.new, pair.base)
        )
        is_slow, is_fast = (
            in_most(
                sum(row.get(blocks) or 0 for row in rows),
                sum(row.get("blocks") or 0 for row in rows),
            )
            for rows in (slow, fast)
        )
        return is_slow and not is_fast

    contended, throttled = mostly("contended_blocks"), mostly("throttled_blocks")
    return replace(pair, contended=contended, throttled=throttled)


def _between(groups: Sequence[_Timed]) -> Spread | None:
    """Of measurements on any two devices of one kind; None with fewer than three devices.

    Its degrees of freedom are those of the devices: more groups know no more devices.
    """
    logs = [some for group in groups if len(some := group.on_each()) > 1]
    devices = {device for group in groups for device in group.devices}
    learnt = spread(logs)
    if learnt is None or len(devices) < FEWEST_DEVICES or len({one.name for one in devices}) > 1:
        return None
    return Spread(sd=learnt.sd, degrees=min(learnt.degrees, len(devices) - 1))


def _case_ratios(pair: DevicePair, groups: Iterable[_Timed]) -> list[CaseRatio]:
    """One per case and pair of copies, the largest difference first."""
    found = [
        CaseRatio(base=before, new=now, ratio=_case_ratio(before, now))
        for group in groups
        for on in group.rows.values()
        for before, now in product(on.get(pair.base, ()), on.get(pair.new, ()))
    ]
    return sorted(found, key=lambda one: -abs(log(one.ratio.value)))


def _case_ratio(base: Row, new: Row) -> Interval:
    """Of two devices: their runs are no reason to differ."""
    try:
        contrast = unpaired_contrast(new["block_ms"], base["block_ms"])
    except (TypeError, ValueError):
        ratio = new["latency_ms"] / base["latency_ms"]
        return Interval(value=ratio, low=nan, high=nan, units=0, reason="no samples")
    noisy = noise_of(new).in_contrast(
        contrast,
        one_process=bool(contrast.reason),
        other_run=False,
        disturbed=disturbed(base, new),
    )
    return noisy.interval()


def _repeats(device: Device | None, groups: Iterable[_Timed]) -> Repeats | None:
    logs = [some for one in groups if (some := one.repeated(device))]
    if not logs:
        return None
    later = [fmean(some[1:]) - some[0] for some in logs]
    return Repeats(
        device=device,
        groups=len(logs),
        ratio=_as_ratio(mean_interval(later, "group")),
        spread=spread(logs),
    )


def _as_ratio(logs: Interval) -> Interval:
    return Interval(
        value=exp(logs.value),
        low=exp(logs.low),
        high=exp(logs.high),
        units=logs.units,
        reason=logs.reason,
    )


def _log_ms(row: Row) -> float:
    return log(row["latency_ms"])
