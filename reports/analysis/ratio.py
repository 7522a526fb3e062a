"""How many times as long one case takes as another one."""

from dataclasses import dataclass
from math import exp, hypot, isfinite, log, nan

from ...harness.stats import ratio_interval
from ..data.row_groups import Row
from ..formatting import number_text, times_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio with its 95 % interval (NaN without one).

    `paired`: measured in the same blocks, so drift cancels.
    """

    value: float
    low: float
    high: float
    paired: bool
    note: str

    @property
    def clear(self) -> bool:
        """The interval excludes 1."""
        return isfinite(self.low) and isfinite(self.high) and not self.low <= 1 <= self.high

    @property
    def text(self) -> str:
        return times_text(self.value, self.low, self.high) + self._unpaired

    @property
    def bounds(self) -> str:
        """`2.05 to 2.16, unpaired`, or `no interval`."""
        if not isfinite(self.low):
            return "no interval"
        return f"{number_text(self.low)} to {number_text(self.high)}{self._unpaired}"

    @property
    def _unpaired(self) -> str:
        return "" if self.paired else ", unpaired"


def time_ratio(numerator: Row, denominator: Row) -> Ratio | None:
    """None if either has no latency."""
    if numerator.get("latency_ms") is None or denominator.get("latency_ms") is None:
        return None
    if numerator.get("session") is not None and numerator["session"] == denominator.get("session"):
        try:
            paired = ratio_interval(numerator["block_ms"], denominator["block_ms"])
        except ValueError:
            pass  # one of them was measured again later, so they share no block
        else:
            low, high = paired.low, paired.high
            return Ratio(value=paired.value, low=low, high=high, paired=True, note=paired.reason)
    value = numerator["latency_ms"] / denominator["latency_ms"]
    # Independent errors add in quadrature on the log scale.
    reach = hypot(log_half_width(numerator), log_half_width(denominator))
    low, high = (value / exp(reach), value * exp(reach)) if isfinite(reach) else (nan, nan)
    note = "not measured in the same blocks"
    return Ratio(value=value, low=low, high=high, paired=False, note=note)


def log_half_width(row: Row) -> float:
    """Half the width of the latency's interval on the log scale; NaN without an interval."""
    low, high = row.get("latency_low_ms"), row.get("latency_high_ms")
    return log(high / low) / 2 if low and high else nan
