"""Errors of exact backends, as multiples of the error of a textbook formula in the same dtype."""

from dataclasses import dataclass

from ..data.exactness import is_exact
from ..data.row_groups import Row, backends, by_environment

ALLOWED_RATIO = 2.0  # what the correctness check accepts, docs/method.md
WRONG = "incorrect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """All cases of one backend in one environment, with an error or with a wrong result."""

    backend: str
    python: str | None
    checked: list[Row]
    wrong: list[Row]

    @property
    def best(self) -> Row:
        return min(self.checked, key=error_ratio)

    @property
    def worst(self) -> Row:
        return max(self.checked, key=error_ratio)


def error_ratio(row: Row) -> float:
    return float(row["error_ratio"])


def checked(rows: list[Row]) -> list[Row]:
    """The rows that were checked against the exact result."""
    return [row for row in rows if row.get("error_ratio") is not None and is_exact(row)]


def errors_by_backend(rows: list[Row]) -> list[Errors]:
    """Per environment, the backends with at least one checked case."""
    return [
        Errors(
            backend=name,
            python=python,
            checked=checked([row for row in mine if row["backend"] == name]),
            wrong=[row for row in mine if row["backend"] == name and row["status"] == WRONG],
        )
        for python, mine in by_environment(rows).items()
        for name in backends(checked(mine))
    ]


def worst(rows: list[Row], most: int) -> list[Row]:
    """The largest ratios first."""
    return sorted(checked(rows), key=lambda row: -error_ratio(row))[:most]
