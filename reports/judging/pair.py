"""How many times as long one case takes as another one, and whether that is more than noise.

The one comparison of two cases: pages, show, compare, gate and packs take their ratios and marks
from here. Two cases of the same blocks are paired, as a backend from outside and its baseline
are; with others that is compared by a ratio of ratios. All else is compared by its processes
(Welch). The interval includes what the samples were not measured over (`Noise`): processes, if one
of the two has a single one, runs, if they were measured at different times, and what other work, a
throttled GPU or another clock may have done to one of them. So the mark follows from the interval.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import hypot, isfinite, log, log1p, nan, sqrt
from statistics import median
from typing import Any

from ...harness.stats.contrasts import (
    Contrast,
    Spread,
    assumed_spread,
    paired_contrast,
    unpaired_contrast,
)
from ...harness.stats.intervals import Samples
from ..data.beside import (
    baseline_of,
    baselines,
    blocks_of,
    in_one_worker,
    shared_row,
    worker_of,
)
from ..data.noise_floor import DISTURBED as DISTURBED_SPREAD
from ..data.processor_time import (
    PROCESSOR_TIMES,
    disturbed,
    in_most,
    is_known,
    processor_samples,
    typical_ms,
)
from ..data.row_groups import Row, once, problem
from .ratio import Allowance, Noise, Ratio, between_runs, noise_of, one_process, words_of

PROCESSOR_TIME, OF_SHORT_CALLS = assumed_spread(0.21), assumed_spread(0.31)
"""How far the ratio of two processor times may be from that of the latencies on a quiet machine: 95
% of pairs of cases, beside four kinds of other work, were within it (docs/method.md).
"""
SHORT_CALL_MS = 1.0  # of processor time in the calling thread: waking others is much of it
CLOCK_STEP_RATIO = 0.02  # a GPU's clock moves in steps of about 1 %
PLAUSIBLE = (1e-9, 1e12)
"""Of a call in ms or J: from less than any clock or counter resolves to 30 years."""
TURNS = "turns"
"""The session of rows that stand for runs which were measured in turns, so that they are paired."""
HINDERED = {
    "contended": "processes may differ while other work disturbs them",
    "throttled": "a throttled device may differ from another",
}


def time_ratio(numerator: Row, denominator: Row) -> Ratio | None:
    """None if either has no latency. Where nobody knows how much runs differ, it is assumed.

    By processor time, if other work disturbed most blocks of one and both rows have it.
    """
    if numerator.get("latency_ms") is None or denominator.get("latency_ms") is None:
        return None
    rows = (numerator, denominator)
    return once(rows, "time ratio", lambda: _time_ratio(rows))


def energy_ratio(numerator: Row, denominator: Row) -> Ratio | None:
    """Of a call, by its windows; None unless both have one with energy."""
    rows = (numerator, denominator)
    samples = [*map(energies, rows)]
    return _ratio_of(rows, samples, pair=turns(rows)) if all(samples) else None


def baseline_ratio(row: Row) -> Ratio | None:
    """Of the baseline as it was timed beside a backend from outside, over its row in the workers of
    the built-in backends. None without both.
    """
    shared = shared_row(row)
    return time_ratio(baseline_of(row), shared) if shared is not None else None


def _time_ratio(rows: tuple[Row, Row]) -> Ratio:
    measured = in_one_worker(rows)
    contended = disturbed(*measured)
    found = _by_processor_time(rows) if contended else None
    if found is None and measured is rows:
        found = _by_way_of_baseline(rows, contended=contended)
    samples = [row.get("block_ms") or () for row in measured]
    return found or _ratio_of(measured, samples, contended=contended)


def _by_processor_time(rows: tuple[Row, Row]) -> Ratio | None:
    """None if it is not known of both."""
    ways = [[processor_samples(row, name) for row in rows] for name in PROCESSOR_TIMES]
    if not all(is_known(samples) for way in ways for samples in way):
        return None
    shortest_ms = min(map(typical_ms, ways[-1]))
    allowed = PROCESSOR_TIME if shortest_ms >= SHORT_CALL_MS else OF_SHORT_CALLS
    found = [_ratio_of(rows, way, processor_time=allowed) for way in ways]
    if not all(isfinite(one.low) for one in found):
        return None
    nearest = min(found, key=lambda one: abs(log(one.value)))
    low, high = min(one.low for one in found), max(one.high for one in found)
    return replace(nearest, low=low, high=high)


def _by_way_of_baseline(rows: tuple[Row, Row], *, contended: bool) -> Ratio | None:
    """A ratio of ratios, each row's to the same baseline in its own blocks. The two are measured in
    different processes, so their errors are independent, as those of Welch's two sides are.
    """
    bases = baselines(rows)
    if bases is None:
        return None
    sides = [
        in_same_blocks(row.get("block_ms") or (), base.get("block_ms") or ())
        for row, base in zip(rows, bases, strict=True)
    ]
    above, below = sides
    if above is None or below is None:
        return None
    contrast = Contrast(
        numerator=above.numerator,
        denominator=below.numerator,
        reason=above.reason or below.reason,
    )
    doubts = ["contended"] if contended else []
    single = bool(contrast.reason)
    allowed = [*_allowances(rows, noise_of(rows[0]), doubts, single=single, other_run=False)]
    both = [one for one in allowed for _ in sides]  # either ratio draws it on its own
    return _judged(contrast, both, by_way_of=bases[0]["backend"])


def _ratio_of(
    rows: tuple[Row, Row],
    samples: Sequence[Samples],
    *,
    pair: bool = True,
    contended: bool = False,
    processor_time: Spread | None = None,
) -> Ratio:
    """By samples that stand for the rows. `pair`: where they are of the same blocks. `contended`:
    other work disturbed them. `processor_time`: how far it may mislead, if they are of it.
    """
    at_once = in_same_session(rows)
    contrast = in_same_blocks(*samples) if at_once and pair else None
    paired = contrast is not None
    contrast = contrast or _unpaired(*samples)
    if contrast is None:
        value = rows[0]["latency_ms"] / rows[1]["latency_ms"]
        return Ratio(value=value, low=nan, high=nan, paired=False)
    of_processes = not any(map(_of_runs, rows))
    single = of_processes and any(sum(map(any, side)) < 2 for side in samples)
    # Different problems and workers of a run have their turns anyway; what is there twice was
    # repeated.
    one, other = ((row.get("run"), worker_of(row), problem(row)) for row in rows)
    other_run = not at_once and (one[0] != other[0] or one == other)
    noise = noise_of(rows[0])
    doubts = ["contended"] if contended else []
    doubts += ["throttled"] if other_run and _one_is_throttled(rows) else []
    allowed = [*_allowances(rows, noise, doubts, single=single, other_run=other_run)]
    if processor_time is not None:
        allowed.append(Allowance(processor_time, "contended", "processor time may mislead by"))
    several = of_processes and not single
    if paired and several and rows[0].get("case") != rows[1].get("case"):  # no copies
        contrast = replace(contrast, prior=noise.pairs)
    if other_run and several and noise.process.source != "assumed":
        contrast = replace(contrast, single=noise.process.spread)
    by_processor_time = processor_time is not None
    return _judged(contrast, allowed, paired=paired, by_processor_time=by_processor_time)


def _judged(
    contrast: Contrast, allowed: Sequence[Allowance], *, paired: bool = True, **how: Any
) -> Ratio:
    """With what the interval allows for. `how`: fields of a Ratio that say how it was made."""
    contrast = replace(contrast, effects=tuple(one.spread for one in allowed if one.spread))
    interval = contrast.interval()
    return Ratio(
        value=interval.value,
        low=interval.low,
        high=interval.high,
        paired=paired,
        noise=words_of(allowed),
        doubts=tuple(dict.fromkeys(one.doubt for one in allowed)),
        contrast=contrast,
        **how,
    )


def _allowances(
    rows: tuple[Row, Row],
    noise: Noise,
    hindered: Sequence[str],
    *,
    single: bool,
    other_run: bool,
) -> Iterator[Allowance]:
    """What may differ between equal cases and is not in the samples of these two."""
    if single:
        alone = one_process(noise)
        yield alone._replace(spread=None) if hindered else alone
    for place, doubt in enumerate(hindered):
        yield Allowance(None if place else DISTURBED_SPREAD, doubt, HINDERED[doubt])
    if other_run:
        yield between_runs(noise)
        clocks = [clock for row in rows if (clock := _clock_mhz(row))]
        if len(clocks) > 1 and (apart := max(clocks) / min(clocks) - 1) > CLOCK_STEP_RATIO:
            yield Allowance(assumed_spread(apart), "clocks_differ", "their clocks differ")


def _one_is_throttled(rows: tuple[Row, Row]) -> bool:
    """In most blocks. Of two runs that has another cause; in one, a backend may cause it itself."""
    throttled = [in_most(row.get("throttled_blocks"), row.get("blocks")) for row in rows]
    return any(throttled) and not all(throttled)


def in_same_session(rows: tuple[Row, Row]) -> bool:
    """Measured at once, or the same samples. In two folders, equal sessions of other blocks are no
    longer the same blocks.
    """
    one, other = (row.get("block_ms") or () for row in rows)
    blocks = {*map(blocks_of, rows)}
    same_run = rows[0].get("run") == rows[1].get("run")
    same_shape = [*map(len, one)] == [*map(len, other)]
    return one == other or (len(blocks) == 1 and None not in blocks and (same_run or same_shape))


def turns(rows: tuple[Row, Row]) -> bool:
    """Whether each unit of one is a run beside which that of the other was measured."""
    return all(row.get("session") == TURNS for row in rows)


def _of_runs(row: Row) -> bool:
    """A unit stands for a run."""
    return (row.get("merged_runs") or 1) > 1


def _clock_mhz(row: Row) -> float | None:
    blocks = [block for process in row.get("conditions") or [] for block in process]
    clocks = [clock for block in blocks if (clock := block.get("sm_clock_mhz")) and clock > 0]
    return float(median(clocks)) if clocks else None


def energies(row: Row) -> Samples:
    """In J of a call, one of a window, [process][window]."""
    by_process: dict[Any, list[tuple[float]]] = {}
    for window in row.get("windows") or []:
        energy_j = window.get("energy_j")
        if window["way"] == "eager" and type(energy_j) in (int, float):
            per_call_j = energy_j / window["calls"]
            if PLAUSIBLE[0] < per_call_j < PLAUSIBLE[1]:
                by_process.setdefault(window.get("process"), []).append((per_call_j,))
    return tuple(map(tuple, by_process.values()))


def in_same_blocks(numerator: Samples, denominator: Samples) -> Contrast | None:
    """Of one session; None if one of the two was measured again later, and they share no block."""
    try:
        return paired_contrast(numerator, denominator)
    except ValueError:
        return None


def _unpaired(numerator: Samples, denominator: Samples) -> Contrast | None:
    try:
        return unpaired_contrast(numerator, denominator)
    except ValueError:
        return None  # rows without samples


def log_bounds(row: Row) -> tuple[float, float]:
    """How far the latency's interval reaches down and up, on the log scale; NaN without one.

    If the row has one process, as far as processes differ.
    """
    value, low, high = (row.get(f"latency_{name}ms") for name in ("", "run_low_", "run_high_"))
    if not value or not low or not high:
        return nan, nan
    spread = DISTURBED_SPREAD if disturbed(row) else noise_of(row).process.spread
    own = log1p(spread.ratio) / sqrt(2) if of_one_process(row) else 0.0
    return hypot(log(value / low), own), hypot(log(high / value), own)


def of_one_process(row: Row) -> bool:
    return sum(any(process) for process in row.get("block_ms") or ()) < 2
