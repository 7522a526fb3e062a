"""How many times as long one case takes as another one, and whether that is more than noise.

Every verdict of a report on times takes its ratio from here. The interval of a ratio includes what
its rows were not measured over: processes, if there was one, and starts, if the two come from
different ones.
"""

from dataclasses import dataclass
from math import exp, expm1, hypot, isfinite, log, log1p, nan

from ...harness.stats.intervals import ratio_interval
from ..data.noise_floor import ASSUMED, ASSUMED_RATIO, DISTURBED_RATIO, percent_text, share_text
from ..data.row_groups import Row, problem
from ..formatting import number_text, ratio_bounds_text, times_text

DISTURBED = ", while other work disturbed most blocks"
"""After numbers that decide nothing for that reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio with its 95 % interval (NaN without one).

    `paired`: measured in the same blocks, so drift cancels. `noise_ratio`: what the interval allows
    for because the rows do not show it, 0 if nothing; `noise`: the same in words, such as
    `the 12 % that processes differ on this machine`. `disturbed`: as below, of either row.
    """

    value: float
    low: float
    high: float
    paired: bool
    note: str
    noise_ratio: float = 0.0
    noise: str = ""
    disturbed: bool = False

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
        known = ratio_bounds_text(self.low, self.high)
        return f"{known}{self._unpaired}" if known else "no interval"

    @property
    def doubt(self) -> str:
        """Why it is not clear: `1.05, within the 12 % that processes differ on this machine`.

        If that explains nothing, the bounds.
        """
        if not self.noise_ratio or not isfinite(self.low):
            return f"ratio {self.bounds}" if isfinite(self.low) else self.bounds
        if abs(log(self.value)) <= log1p(self.noise_ratio):
            return f"ratio {number_text(self.value)}, within {self.noise}"
        return f"ratio {self.bounds}, which allows for {self.noise}"

    @property
    def beside(self) -> str:
        """`, while other work disturbed most blocks`, of a clear ratio; others have `doubt`."""
        return DISTURBED if self.clear and self.disturbed else ""

    @property
    def _unpaired(self) -> str:
        return "" if self.paired else ", unpaired"


def time_ratio(numerator: Row, denominator: Row) -> Ratio | None:
    """None if either has no latency."""
    if numerator.get("latency_ms") is None or denominator.get("latency_ms") is None:
        return None
    rows = (numerator, denominator)
    if numerator.get("session") is not None and numerator["session"] == denominator.get("session"):
        try:
            paired = ratio_interval(numerator["block_ms"], denominator["block_ms"])
        except ValueError:
            pass  # one of them was measured again later, so they share no block
        else:
            single = any(map(of_one_process, rows))
            noise_ratio, noise = _noise(*rows) if single else (0.0, "")
            low, high = widened(paired.value, paired.low, paired.high, noise_ratio)
            return Ratio(
                value=paired.value,
                low=low,
                high=high,
                paired=True,
                note=paired.reason,
                noise_ratio=noise_ratio,
                noise=noise,
                disturbed=disturbed(*rows),
            )
    return _unpaired(numerator, denominator)


def log_bounds(row: Row) -> tuple[float, float]:
    """How far the latency's interval reaches down and up, on the log scale; NaN without one.

    If the row has one process, as far as processes differ.
    """
    value, low, high = (row.get(f"latency_{name}ms") for name in ("", "low_", "high_"))
    if not value or not low or not high:
        return nan, nan
    own = log1p(_noise(row, row)[0]) / 2**0.5 if of_one_process(row) else 0.0
    return hypot(log(value / low), own), hypot(log(high / value), own)


def disturbed(*rows: Row) -> bool:
    """Whether other work competed for the cores in most blocks of one of these rows."""
    return any(2 * (row.get("contended_blocks") or 0) > (row.get("blocks") or 0) for row in rows)


def of_one_process(row: Row) -> bool:
    return sum(any(process) for process in row.get("block_ms") or ()) < 2


def _unpaired(numerator: Row, denominator: Row) -> Ratio:
    """Independent errors add in quadrature on the log scale."""
    value = numerator["latency_ms"] / denominator["latency_ms"]
    (above_down, above_up), (below_down, below_up) = map(log_bounds, (numerator, denominator))
    noise_ratio, noise, starts = 0.0, "", 0.0
    if any(map(of_one_process, (numerator, denominator))):
        noise_ratio, noise = _noise(numerator, denominator)
    if problem(numerator) == problem(denominator):  # of one group, measured at different times
        known = numerator.get("between_runs_ratio")
        starts = ASSUMED_RATIO if known is None else known
        noise_ratio = expm1(hypot(log1p(noise_ratio), log1p(starts)))
        differ = "may differ" if known is None else "differ on this machine"
        noise = f"the {percent_text(noise_ratio)} that separate measurements {differ}"
    down, up = hypot(above_down, below_up), hypot(above_up, below_down)
    low, high = widened(value, value / exp(down), value * exp(up), starts)
    return Ratio(
        value=value,
        low=low,
        high=high,
        paired=False,
        note="not measured in the same blocks",
        noise_ratio=noise_ratio,
        noise=noise,
        disturbed=disturbed(numerator, denominator),
    )


def widened(value: float, low: float, high: float, ratio: float) -> tuple[float, float]:
    """The bounds with an independent effect added in quadrature on the log scale."""
    if not ratio or not (isfinite(low) and isfinite(high) and low > 0):
        return low, high
    effect = log1p(ratio)
    return (
        value / exp(hypot(log(value / low), effect)),
        value * exp(hypot(log(high / value), effect)),
    )


def _noise(one: Row, other: Row) -> tuple[float, str]:
    """By how much processes differ, and what that is in words."""
    ratio = one.get("process_noise_ratio")
    source = str(one.get("process_noise_source"))
    if ratio is None:
        ratio, source = ASSUMED_RATIO, ASSUMED.source
    if ratio < DISTURBED_RATIO and disturbed(one, other):
        text = share_text(DISTURBED_RATIO, ASSUMED.source)
        return DISTURBED_RATIO, f"{text} while other work disturbs them"
    return ratio, share_text(ratio, source)
