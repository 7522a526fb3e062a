"""How many times as long one case takes as another one."""

from dataclasses import dataclass
from math import exp, hypot, isfinite, log, nan

from ...harness.stats import ratio_interval
from ..data.row_groups import Row
from ..formatting import times_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """With its 95 % interval (NaN where there is none). `paired`: measured in the same blocks, so
    drift cancels.
    """

    value: float
    low: float
    high: float
    paired: bool
    note: str

    @property
    def clear(self) -> bool:
        """The interval leaves out 1."""
        return isfinite(self.low) and isfinite(self.high) and not self.low <= 1 <= self.high

    @property
    def text(self) -> str:
        return times_text(self.value, self.low, self.high) + ("" if self.paired else ", unpaired")


def time_ratio(numerator: Row, denominator: Row) -> Ratio | None:
    """None where either has no latency."""
    if numerator.get("latency_ms") is None or denominator.get("latency_ms") is None:
        return None
    if numerator.get("session") is not None and numerator["session"] == denominator.get("session"):
        try:
            paired = ratio_interval(numerator["block_ms"], denominator["block_ms"])
        except ValueError:
            pass  # equal sessions, but one of them was measured again later: no block in common
        else:
            return Ratio(
                value=paired.value,
                low=paired.low,
                high=paired.high,
                paired=True,
                note=paired.reason,
            )
    value = numerator["latency_ms"] / denominator["latency_ms"]
    # Independent errors add in squares on the log scale.
    reach = hypot(_reach(numerator), _reach(denominator))
    low, high = (value / exp(reach), value * exp(reach)) if isfinite(reach) else (nan, nan)
    return Ratio(
        value=value, low=low, high=high, paired=False, note="not measured in the same blocks"
    )


def _reach(row: Row) -> float:
    low, high = row.get("latency_low_ms"), row.get("latency_high_ms")
    return log(high / low) / 2 if low and high else nan
