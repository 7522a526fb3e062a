"""Counts over N that are a polynomial of second degree: solved exactly, in fractions, and held
against every other length.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

FEWEST = 3  # lengths that three coefficients are solved from


@dataclass(frozen=True, slots=True, kw_only=True)
class Polynomial:
    """constant + linear N + quadratic N^2, through the three longest lengths.

    `agrees` are the other lengths at which nothing is left over, `off` those at which something is,
    with how much more was counted there.
    """

    constant: Fraction
    linear: Fraction
    quadratic: Fraction
    solved: tuple[int, ...]
    agrees: tuple[int, ...]
    off: tuple[tuple[int, Fraction], ...]

    def at(self, n: int) -> Fraction:
        return self.constant + self.linear * n + self.quadratic * n * n

    @property
    def exact(self) -> bool:
        """A fourth length, the next shorter one, agrees to the last unit. Shorter ones may not:
        there the peak can be another moment's.
        """
        return bool(self.agrees) and (not self.off or self.agrees[-1] > self.off[-1][0])

    @property
    def holds_from(self) -> int:
        """The shortest length from which on every counted one agrees."""
        last_off = self.off[-1][0] if self.off else 0
        return min(n for n in (*self.agrees, *self.solved) if n > last_off)


def through(counts: Mapping[int, int]) -> Polynomial | None:
    """The polynomial through the counts at the three longest N; None with fewer than three
    lengths.
    """
    lengths = sorted(counts)
    if len(lengths) < FEWEST:
        return None
    solved, others = lengths[-FEWEST:], lengths[:-FEWEST]
    (x, y, z), (p, q, r) = solved, [counts[n] for n in solved]
    # Newton's divided differences, times their common denominator: whole numbers stay whole, and
    # fractions are slow.
    of = (y - x) * (z - y) * (z - x)
    first, second = (q - p) * (z - y) * (z - x), (r - q) * (y - x) * (z - x)
    quadratic = (second - first) // (z - x)  # both are multiples of z - x
    linear = first - quadratic * (x + y)
    constant = p * of - linear * x - quadratic * x * x
    left = {n: counts[n] * of - (constant + linear * n + quadratic * n * n) for n in others}
    return Polynomial(
        constant=Fraction(constant, of),
        linear=Fraction(linear, of),
        quadratic=Fraction(quadratic, of),
        solved=tuple(solved),
        agrees=tuple(n for n, rest in left.items() if rest == 0),
        off=tuple((n, Fraction(rest, of)) for n, rest in left.items() if rest != 0),
    )
