"""From which N on one backend is faster than another one: the lengths between which it overtakes,
and where by interpolation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from ..data.row_groups import Row
from ..formatting import count_text
from .ratio import Ratio, time_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Overtaking:
    """`faster_from`: the shortest N from which on it is faster at every length by more than noise,
    None where it is not at the longest.

    `slower_to`: the longest N below at which it is slower by more than noise, None where it never
    is. `even_at`: where a straight line between those two, of the logarithms, crosses a ratio of 1.
    `lengths`: the shortest and the longest N at which both were timed.
    """

    backend: str
    against: str
    faster_from: int | None
    slower_to: int | None
    even_at: float | None
    lengths: tuple[int, int]

    @property
    def text(self) -> str:
        """`from N = 2k on (slower up to 1k, even at about 1400)`."""
        first, last = self.lengths
        if self.faster_from is None:
            return f"not up to N = {count_text(last)}"
        if self.slower_to is None:
            return (
                f"at every N from {count_text(first)} on"
                if self.faster_from == first
                else f"from N = {count_text(self.faster_from)} on"
            )
        even = "" if self.even_at is None else f", even at about {float(f'{self.even_at:.2g}'):.0f}"
        return (
            f"from N = {count_text(self.faster_from)} on (slower up to"
            f" {count_text(self.slower_to)}{even})"
        )


def overtaking(rows: Sequence[Row], backend: str, against: str) -> Overtaking | None:
    """Among the rows of one problem over N; None where the two have no timed length in common."""
    ratios = _ratios(rows, backend, against)
    if not ratios:
        return None
    lengths = sorted(ratios)
    faster_from: int | None = None
    for n in reversed(lengths):
        if not ratios[n].high < 1:
            break
        faster_from = n
    slower = [n for n in lengths if ratios[n].low > 1 and (faster_from is None or n < faster_from)]
    slower_to = max(slower, default=None)
    return Overtaking(
        backend=backend,
        against=against,
        faster_from=faster_from,
        slower_to=slower_to,
        even_at=(
            _even(ratios, slower_to, faster_from)
            if slower_to is not None and faster_from is not None
            else None
        ),
        lengths=(lengths[0], lengths[-1]),
    )


def _ratios(rows: Sequence[Row], backend: str, against: str) -> dict[int, Ratio]:
    """By N, the time of `backend` over that of `against`."""
    ours, theirs = (
        {row["seq_len"]: row for row in rows if row["backend"] == name}
        for name in (backend, against)
    )
    found = {n: time_ratio(ours[n], theirs[n]) for n in ours.keys() & theirs.keys()}
    return {n: ratio for n, ratio in found.items() if ratio is not None}


def _even(ratios: dict[int, Ratio], slower_to: int, faster_from: int) -> float:
    above, below = log(ratios[slower_to].value), log(ratios[faster_from].value)
    share = above / (above - below)
    return exp(log(slower_to) + share * log(faster_from / slower_to))
