"""From which N on one backend is faster than another one, or needs fewer bytes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

from ..data.row_groups import Row
from ..formatting import count_text, list_text
from ..ratio import Ratio, time_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """From which N on `backend` is clearly faster.

    `ratios`: its time over that of `against`, at every N at which both were timed, in order.
    """

    backend: str
    against: str
    ratios: Mapping[int, Ratio]

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(self.ratios)

    @property
    def faster_at(self) -> tuple[int, ...]:
        """Where it is clearly so; at lengths that are in neither the two cannot be told apart."""
        return tuple(n for n, ratio in self.ratios.items() if ratio.high < 1)

    @property
    def slower_at(self) -> tuple[int, ...]:
        return tuple(n for n, ratio in self.ratios.items() if ratio.low > 1)

    @property
    def faster_from(self) -> int | None:
        """From which N on at every length; None if it is not at the longest."""
        return holds_from(self.ratios, lambda n: n in self.faster_at)

    @property
    def slower_to(self) -> int | None:
        """The longest N below at which it is clearly slower, if any."""
        start = self.faster_from
        return max((n for n in self.slower_at if start is None or n < start), default=None)

    @property
    def even_at(self) -> float | None:
        """Where straight lines through the ratios measured between these two, on logarithms, cross
        a ratio of 1; None if they do so several times.
        """
        low, high = self.slower_to, self.faster_from
        if low is None or high is None:
            return None
        between = [(n, log(one.value)) for n, one in self.ratios.items() if low <= n <= high]
        return crossing(between)

    @property
    def text(self) -> str:
        """`from N = 2k on (slower up to 1k, even at about 1400)`, `at N = 4k, the longest`."""
        first, last = self.lengths[0], self.lengths[-1]
        start, slower_to, even_at = self.faster_from, self.slower_to, self.even_at
        if start is None and self.faster_at:
            return f"only at N = {list_text([count_text(n) for n in self.faster_at])}"
        if start is None:
            return f"not up to N = {count_text(last)}"
        if start == first and first != last:
            return f"at every N from {count_text(first)} to {count_text(last)}"
        text = from_text(start, self.lengths, f"N = {count_text(start)}")
        if slower_to is None:
            return text
        even = "" if even_at is None else f", even at about {float(f'{even_at:.2g}'):.0f}"
        below = {n for n in self.lengths if n <= slower_to}
        where = "up to" if below <= set(self.slower_at) else "at"
        return f"{text} (slower {where} {count_text(slower_to)}{even})"


def holds_from(lengths: Iterable[int], holds: Callable[[int], bool]) -> int | None:
    """The shortest length from which on it holds at every one; None if not at the longest."""
    start: int | None = None
    for n in sorted(lengths, reverse=True):
        if not holds(n):
            break
        start = n
    return start


def from_text(start: int, lengths: Sequence[int], where: str) -> str:
    """`from N = 2k on`; at the longest length nothing is known of what is beyond it:
    `at N = 8k, the longest`, and `at N = 8k` if that is the only one. `where`: `start` in words.
    """
    if start < max(lengths):
        return f"from {where} on"
    return f"at {where}, the longest" if len(set(lengths)) > 1 else f"at {where}"


def crossover(rows: Sequence[Row], backend: str, against: str) -> Crossover | None:
    """Among the rows of one problem over N; None if the two have no timed length in common."""
    pairs = _pairs(rows, backend, against).items()
    ratios = {n: ratio for n, pair in pairs if (ratio := time_ratio(*pair)) is not None}
    return Crossover(backend=backend, against=against, ratios=ratios) if ratios else None


def fewer_bytes_from(
    rows: Sequence[Row], backend: str, against: str
) -> tuple[int | None, list[int]]:
    """The shortest N from which on `backend` needs fewer peak bytes at every length, and all N at
    which both are known: bytes are exact, so these decide. None if it does not at the longest.
    """
    sizes = {
        n: (ours["peak_bytes"], theirs["peak_bytes"])
        for n, (ours, theirs) in _pairs(rows, backend, against).items()
        if None not in (ours.get("peak_bytes"), theirs.get("peak_bytes"))
    }
    return holds_from(sizes, lambda n: bool(sizes[n][0] < sizes[n][1])), list(sizes)


def _pairs(rows: Sequence[Row], backend: str, against: str) -> dict[int, tuple[Row, Row]]:
    """By N, in order: the rows of both."""
    ours, theirs = (
        {row["seq_len"]: row for row in rows if row["backend"] == name}
        for name in (backend, against)
    )
    return {n: (ours[n], theirs[n]) for n in sorted(ours.keys() & theirs.keys())}


def crossing(points: Sequence[tuple[int, float]]) -> float | None:
    """The N at which straight lines through these values, over log N, are 0.

    None without a change of sign, and with several: which one counts is then noise.
    """
    changes = [(one, other) for one, other in pairwise(points) if (one[1] > 0) != (other[1] > 0)]
    if len(changes) != 1:
        return None
    ((n, above), (m, below)) = changes[0]
    return exp(log(n) + above / (above - below) * log(m / n))
