"""How exact the backends are: their errors against a float64 reference, as shares of what an honest
textbook formula errs.
"""

from dataclasses import dataclass

from ..comparison.environments import apart
from ..data.exactness import is_exact
from ..data.row_groups import Row, backends

ALLOWED_RATIO = 2.0  # what the gate lets pass, docs/method.md
WRONG = "incorrect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Of one backend, over all its cases in an environment: `best` and `worst` are the rows with
    the smallest and the largest ratio.
    """

    backend: str
    python: str | None
    judged: list[Row]
    wrong: list[Row]

    @property
    def best(self) -> Row:
        return min(self.judged, key=ratio)

    @property
    def worst(self) -> Row:
        return max(self.judged, key=ratio)


def ratio(row: Row) -> float:
    return float(row["error_ratio"])


def judged(rows: list[Row]) -> list[Row]:
    """Those that are held against the exact result."""
    return [row for row in rows if row.get("error_ratio") is not None and is_exact(row)]


def by_backend(rows: list[Row]) -> list[Errors]:
    """The backends of which at least one case was judged, environment by environment."""
    return [
        Errors(
            backend=name,
            python=python,
            judged=judged([row for row in mine if row["backend"] == name]),
            wrong=[row for row in mine if row["backend"] == name and row["status"] == WRONG],
        )
        for python, mine in apart(rows).items()
        for name in backends(judged(mine))
    ]


def worst(rows: list[Row], most: int) -> list[Row]:
    """The largest ratios first."""
    return sorted(judged(rows), key=lambda row: -ratio(row))[:most]
