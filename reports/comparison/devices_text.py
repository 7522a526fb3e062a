"""How much devices of one kind differ, in sentences: for the section, the card and the badge."""

from math import isfinite

from ...harness.stats.intervals import Interval
from ...harness.stats.wide_intervals import ratio_says_nothing
from ..data.row_groups import label, problem, varying_axes
from ..formatting import UNCERTAIN, Number, list_text, number_text, plural, ratio_bounds_text
from .devices import MARGIN_RATIO, CaseRatio, Copies, DevicePair, Repeats


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
    if pair.verdict == "differ":
        return f"{count} of one kind differ by more than {margin}: {said}"
    if pair.verdict == "same":
        return f"{count} of one kind agree within {margin}: {said}"
    why = "other work competed for the cores of the slower one, so " if pair.contended else ""
    return f"{said}; {why}whether they differ by more than {margin} is not decided"


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
