"""Which exact backend is fastest on one problem, and whether that is more than noise."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..data.exactness import is_exact
from ..data.row_groups import Group, Row
from ..ratio import Ratio, time_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """The timed exact rows of one problem, fastest first.

    `margins`: the times of the others over that of the first. `inexact`: the other timed rows,
    fastest first. An approximation is not ranked.
    """

    ranking: list[Row]
    margins: list[Ratio]
    inexact: list[Row]

    @property
    def tied(self) -> list[Row]:
        """The fastest, and the others that are not clearly slower; empty without a tie."""
        pairs = zip(self.ranking[1:], self.margins, strict=True)
        others = [row for row, margin in pairs if not margin.clear]
        return [self.ranking[0], *others] if others else []

    @property
    def clear(self) -> bool:
        """The first is faster than every other by more than noise."""
        return bool(self.margins) and not self.tied

    @property
    def rival(self) -> tuple[Row, Ratio]:
        """The next one, or the first of those that are not clearly slower."""
        pairs = list(zip(self.ranking[1:], self.margins, strict=True))
        return next((pair for pair in pairs if not pair[1].clear), pairs[0])


def race(rows: Sequence[Row]) -> Race:
    timed = sorted(
        (row for row in rows if row.get("latency_ms") is not None),
        key=lambda row: (row["latency_ms"], row["case"]),
    )
    ranking = [row for row in timed if is_exact(row)]
    margins = [time_ratio(row, ranking[0]) for row in ranking[1:]]
    known = [margin for margin in margins if margin is not None]
    return Race(ranking=ranking, margins=known, inexact=[row for row in timed if not is_exact(row)])


def tie_text(found: Race) -> str:
    """`tie: sdpa = naive`; empty without a tie."""
    names = [row["backend"] for row in found.tied]
    return f"tie: {' = '.join(names)}" if names else ""


def longest_race(group: Group) -> tuple[int, Race] | None:
    """The race at the longest N that two exact backends finished, else that one finished."""
    races = {n: race([row for row in group.rows if row["seq_len"] == n]) for n in group.lengths}
    ran = [n for n, found in races.items() if found.ranking]
    contested = [n for n in ran if races[n].margins]
    return (max(contested or ran), races[max(contested or ran)]) if ran else None
