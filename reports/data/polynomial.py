"""Counts that are a quadratic polynomial in N: solved exactly, checked at all other lengths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from ..formatting import length_text
from .row_groups import Row

FEWEST = 3  # lengths to solve three coefficients


@dataclass(frozen=True, slots=True, kw_only=True)
class Polynomial:
    """constant + linear N + quadratic N^2, through the three longest lengths.

    `agrees`: the other lengths at which it is exact; `off`: those at which it is not, with the
    difference.
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
    def integers(self) -> tuple[int, int, int, int]:
        """Constant, linear and quadratic times the last one, their common denominator."""
        parts = (self.constant, self.linear, self.quadratic)
        of = lcm(*(one.denominator for one in parts))
        constant, linear, quadratic = (int(one * of) for one in parts)
        return constant, linear, quadratic, of

    def __str__(self) -> str:
        """`64 N² + 4 096 N + 16`."""
        terms = ((self.quadratic, "\u00a0N²"), (self.linear, "\u00a0N"), (self.constant, ""))
        texts = [
            f"{'−' if value < 0 else '+'} {coefficient_text(abs(value))}{power}"
            for value, power in terms
            if value
        ]
        return " ".join(texts).removeprefix("+ ") or "0"

    @property
    def exact(self) -> bool:
        """The fourth longest length agrees exactly.

        Shorter ones may not: there the peak can be at another point of the call.
        """
        return bool(self.agrees) and (not self.off or self.agrees[-1] > self.off[-1][0])

    @property
    def holds_from(self) -> int:
        """The shortest length from which on all lengths agree."""
        last_off = self.off[-1][0] if self.off else 0
        return min(n for n in (*self.agrees, *self.solved) if n > last_off)


def through(counts: Mapping[int, int]) -> Polynomial | None:
    """The polynomial through the three longest N; None with fewer lengths."""
    lengths = sorted(counts)
    if len(lengths) < FEWEST:
        return None
    solved, others = lengths[-FEWEST:], lengths[:-FEWEST]
    (x, y, z), (p, q, r) = solved, [counts[n] for n in solved]
    # Newton's divided differences times their common denominator: integers, as fractions are slow.
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


def flops_over(rows: Sequence[Row], axis: str = "seq_len") -> Polynomial | None:
    """Of the FLOPs that attention needs, over N or another axis; rows not run may not have them."""
    return through({row[axis]: row["work_flops"] for row in rows if row.get("work_flops")})


def bytes_over_n(
    rows: Sequence[Row], backend: str, column: str = "peak_bytes"
) -> Polynomial | None:
    """The polynomial of a backend's bytes among the rows of one problem over N."""
    mine = (row for row in rows if row["backend"] == backend and row.get(column) is not None)
    return through({row["seq_len"]: int(row[column]) for row in mine})


def coefficient_text(value: Fraction) -> str:
    return length_text(int(value)) if value.denominator == 1 else f"{float(value):.6g}"
