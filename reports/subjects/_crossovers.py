"""From which N on a ratio is beyond an edge: one backend faster than another one, or attention more
than half of a block.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

from ..data.row_groups import Row
from ..formatting import count_text, list_text
from ..judging.pair import time_ratio
from ..judging.ratio import Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """Where ratios of times, by N in order, are clearly below an edge, or above it.

    `ignored`: lengths that decide nothing. At lengths that are neither in `holds_at` nor in
    `fails_at` nobody can tell.
    """

    ratios: Mapping[int, Ratio]
    edge: float = 1
    above: bool = False
    ignored: Collection[int] = ()

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(self.ratios)

    @property
    def holds_at(self) -> tuple[int, ...]:
        return self._beyond(above=self.above)

    @property
    def fails_at(self) -> tuple[int, ...]:
        return self._beyond(above=not self.above)

    def _beyond(self, *, above: bool) -> tuple[int, ...]:
        return tuple(
            n
            for n, ratio in self.ratios.items()
            if (ratio.low > self.edge if above else ratio.high < self.edge)
            if n not in self.ignored
        )

    @property
    def start(self) -> int | None:
        """From which N on it holds at every length; None if it does not at the longest."""
        return holds_from(self.ratios, lambda n: n in self.holds_at)

    @property
    def last_fail(self) -> int | None:
        return self.fails_at[-1] if self.fails_at else None

    @property
    def even_at(self) -> float | None:
        """Where straight lines through the ratios measured between these two, on logarithms, cross
        the edge; None if they do so several times.
        """
        low, high = self.last_fail, self.start
        if low is None or high is None:
            return None
        points = [(n, log(one.value / self.edge)) for n, one in self.ratios.items()]
        changes = [
            (one, other)
            for one, other in pairwise(point for point in points if low <= point[0] <= high)
            if (one[1] > 0) != (other[1] > 0)
        ]
        if len(changes) != 1:
            return None  # with several, which one counts is noise
        ((n, above), (m, below)) = changes[0]
        return exp(log(n) + above / (above - below) * log(m / n))

    @property
    def where(self) -> str:
        """`from N = 2k on`, `at N = 4k, the longest`, `only at N = 1k`, `at no N up to 4k`."""
        start, first, last = self.start, self.lengths[0], self.lengths[-1]
        if start is None and self.holds_at:
            return f"only at N = {list_text([count_text(n) for n in self.holds_at])}"
        if start is None:
            return f"at no N up to {count_text(last)}"
        if start == first != last:
            return f"at every N from {count_text(first)} to {count_text(last)}"
        return from_text(start, self.lengths, f"N = {count_text(start)}")

    def text(self, fails: str, even: str) -> str:
        """`from N = 2k on (slower up to 1k, even at about 1400)`."""
        return self.where + (self.before(fails, even) if self.start is not None else "")

    def before(self, fails: str, even: str) -> str:
        """` (slower up to 1k, even at about 1400)`; "" if it fails nowhere."""
        if self.last_fail is None:
            return ""
        until = "up to" if self.fails_at == self.lengths[: len(self.fails_at)] else "at"
        half = "" if self.even_at is None else f", {even} at about {about_text(self.even_at)}"
        return f" ({fails} {until} {count_text(self.last_fail)}{half})"


def about_text(n: float) -> str:
    """Two digits."""
    return f"{float(f'{n:.2g}'):.0f}"


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
    """Where one is faster, among the rows of one problem over N; None if the two have no timed
    length in common.
    """
    pairs = _pairs(rows, backend, against).items()
    ratios = {n: ratio for n, pair in pairs if (ratio := time_ratio(*pair)) is not None}
    return Crossover(ratios=ratios) if ratios else None


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
