"""The decode steps of a comparison: the share of memory bandwidth that either side reached."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ...harness.stats.intervals import Interval, latency_interval
from ..data.decode import Rate
from ..formatting import bandwidth_text, json_fields, list_text, plural
from .case_samples import CaseSamples
from .verdict import CaseVerdict

TITLE = "bandwidth"
ARROW = " → "
UNKNOWN, NOT_MEASURED = "unknown", "not measured"
MOST_NAMED = 3


def cell(found: CaseVerdict) -> str:
    """`61.0 % (58.2 to 63.9) → 75.1 % (72.0 to 78.4)`; "" if it is not about a decode step.

    Rates, unless the bandwidth of both sides was measured.
    """
    rates = [_rate(one) for one in (found.base, found.new)]
    if found.metric != "latency" or not any(rates):
        return ""
    shares = [rate.share_text for rate in rates if rate]
    if all(shares) and len(shares) == len(rates):
        return ARROW.join(shares)
    return ARROW.join((rate.rate_text if rate else "") or UNKNOWN for rate in rates)


def sentences(verdicts: Sequence[CaseVerdict]) -> Iterator[str]:
    """What the shares are of, and what limits them."""
    latencies = [one for one in verdicts if one.metric == "latency"]
    sides = [[one.base for one in latencies], [one.new for one in latencies]]
    rates = [[rate for one in side if (rate := _rate(one))] for side in sides]
    if not any(rates):
        return
    before, now = (_wholes(some) for some in rates)
    of = now if before == now else f"{before} before, {now} now"
    share = (
        ""
        if before == now == NOT_MEASURED
        else f", as a share of the memory bandwidth that calibration measured ({of})"
    )
    yield f"Bandwidth of decode steps: bytes that must be moved over the time{share}."
    counts = Counter(note for some in rates for rate in some for note in rate.notes)
    every = sum(map(len, rates))
    for note, count in counts.most_common(MOST_NAMED):
        where = "" if count == every else f", {count} of {every} values"
        yield f"Of these{where}: {note}."
    if (more := len(counts) - MOST_NAMED) > 0:
        yield f"{plural(more, 'more remark')} on them: --format json has all."


def fields(case: CaseSamples | None) -> dict[str, Any] | None:
    """For JSON: the rate and the share with their bounds; None if it is no decode step."""
    rate = _rate(case)
    if rate is None:
        return None
    known = {
        f"{bound}{name}": value
        for name, interval in (("bytes_per_s", rate.bytes_per_s), ("bandwidth_ratio", rate.share))
        for bound, value in zip(("", "low_", "high_"), _bounds(interval), strict=True)
    }
    return {
        **known,
        "measured_bytes_per_s": rate.traffic.memory_bytes_per_s,
        "fits_in_cache": rate.traffic.fits_in_cache,
        "note": rate.note,
    }


def _bounds(found: Interval | None) -> list[float | None]:
    return [*json_fields(found, "value", "low", "high").values()] if found else [None] * 3


def _rate(case: CaseSamples | None) -> Rate | None:
    """None without a latency, or if it is no decode step."""
    if case is None or case.traffic is None or not any(map(any, case.block_ms)):
        return None
    return case.traffic.rate(latency_interval(case.block_ms))


def _wholes(rates: Sequence[Rate]) -> str:
    """The measured bandwidth of a side."""
    known = (bandwidth_text(rate.traffic.memory_bytes_per_s) for rate in rates)
    return list_text(list(dict.fromkeys(filter(None, known)))) or NOT_MEASURED
