"""From which N on one backend is faster than another one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

from ..data.row_groups import Row
from ..formatting import count_text, list_text
from ..ratio import Ratio, time_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """From which N on `backend` is clearly faster.

    `faster_from`: the shortest N from which on it is clearly faster at every length; None if it is
    not faster at the longest. `slower_to`: the longest N below at which it is clearly slower, if
    any. `even_at`: where straight lines through the ratios measured from there to there, on
    logarithms, cross a ratio of 1; None if they do so several times.
    `lengths`: every N at which both were timed; `faster_at` and `slower_at`: those at which it is
    clearly so. At the others the two cannot be told apart.
    """

    backend: str
    against: str
    faster_from: int | None
    slower_to: int | None
    even_at: float | None
    lengths: tuple[int, ...]
    faster_at: tuple[int, ...]
    slower_at: tuple[int, ...]

    @property
    def text(self) -> str:
        """`from N = 2k on (slower up to 1k, even at about 1400)`, `at N = 4k, the longest`."""
        first, last = self.lengths[0], self.lengths[-1]
        if self.faster_from is None and self.faster_at:
            return f"only at N = {list_text([count_text(n) for n in self.faster_at])}"
        if self.faster_from is None:
            return f"not up to N = {count_text(last)}"
        if self.faster_from == first and first != last:
            return f"at every N from {count_text(first)} to {count_text(last)}"
        text = from_text(self.faster_from, self.lengths, f"N = {count_text(self.faster_from)}")
        if self.slower_to is None:
            return text
        even = "" if self.even_at is None else f", even at about {float(f'{self.even_at:.2g}'):.0f}"
        below = [n for n in self.lengths if n <= self.slower_to]
        where = "up to" if set(below) <= set(self.slower_at) else "at"
        return f"{text} (slower {where} {count_text(self.slower_to)}{even})"


def from_text(start: int, lengths: Sequence[int], where: str) -> str:
    """`from N = 2k on`; at the longest length nothing is known of what is beyond it:
    `at N = 8k, the longest`, and `at N = 8k` if that is the only one. `where`: `start` in words.
    """
    if start < max(lengths):
        return f"from {where} on"
    return f"at {where}, the longest" if len(set(lengths)) > 1 else f"at {where}"


def crossover(rows: Sequence[Row], backend: str, against: str) -> Crossover | None:
    """Among the rows of one problem over N; None if the two have no timed length in common."""
    ratios = _ratios(rows, backend, against)
    if not ratios:
        return None
    lengths = sorted(ratios)
    faster_from: int | None = None
    for n in reversed(lengths):
        if not ratios[n].high < 1:
            break
        faster_from = n
    slower = [n for n in lengths if ratios[n].low > 1]
    slower_to = max((n for n in slower if faster_from is None or n < faster_from), default=None)
    crosses = slower_to is not None and faster_from is not None
    return Crossover(
        backend=backend,
        against=against,
        faster_from=faster_from,
        slower_to=slower_to,
        even_at=(
            crossing(
                [
                    (n, log(ratios[n].value))
                    for n in lengths
                    if (slower_to or 0) <= n <= (faster_from or 0)
                ]
            )
            if crosses
            else None
        ),
        lengths=tuple(lengths),
        faster_at=tuple(n for n in lengths if ratios[n].high < 1),
        slower_at=tuple(slower),
    )


def fewer_bytes_from(
    rows: Sequence[Row], backend: str, against: str
) -> tuple[int | None, list[int]]:
    """The shortest N from which on `backend` needs fewer peak bytes at every length, and all N at
    which both are known: bytes are exact, so these decide. None if it does not at the longest.
    """
    ours, theirs = (
        {
            row["seq_len"]: row["peak_bytes"]
            for row in rows
            if row["backend"] == name and row.get("peak_bytes") is not None
        }
        for name in (backend, against)
    )
    start: int | None = None
    lengths = sorted(ours.keys() & theirs.keys())
    for n in reversed(lengths):
        if ours[n] >= theirs[n]:
            break
        start = n
    return start, lengths


def _ratios(rows: Sequence[Row], backend: str, against: str) -> dict[int, Ratio]:
    """By N, the time of `backend` over that of `against`."""
    ours, theirs = (
        {row["seq_len"]: row for row in rows if row["backend"] == name}
        for name in (backend, against)
    )
    found = {n: time_ratio(ours[n], theirs[n]) for n in ours.keys() & theirs.keys()}
    return {n: ratio for n, ratio in found.items() if ratio is not None}


def crossing(points: Sequence[tuple[int, float]]) -> float | None:
    """The N at which straight lines through these values, over log N, are 0.

    None without a change of sign, and with several: which one counts is then noise.
    """
    changes = [(one, other) for one, other in pairwise(points) if (one[1] > 0) != (other[1] > 0)]
    if len(changes) != 1:
        return None
    ((n, above), (m, below)) = changes[0]
    return exp(log(n) + above / (above - below) * log(m / n))
