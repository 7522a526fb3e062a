"""Which exact backend is fastest on one problem, and whether that is more than noise."""

from collections import Counter
from dataclasses import dataclass
from math import isfinite

from ..data.exactness import is_exact, note
from ..data.row_groups import Group, Row, axis_text
from ..formatting import number_text, time_text
from .ratio import Ratio, time_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """The timed rows of one problem that are exact, fastest first, and how many times as long each
    of the others takes as the first.

    `inexact` are the other timed rows, fastest first: what approximates attention, or does
    something else, wins no race against it.
    """

    ranking: list[Row]
    margins: list[Ratio]
    inexact: list[Row]

    @property
    def tie(self) -> int | None:
        """The first of the others that the first is not told apart from, as its place in
        `margins`.
        """
        return next((place for place, margin in enumerate(self.margins) if not margin.clear), None)

    @property
    def clear(self) -> bool:
        """There are others, and the first is faster than every one by more than noise."""
        return bool(self.margins) and self.tie is None


def race(rows: list[Row]) -> Race:
    timed = sorted(
        (row for row in rows if row.get("latency_ms") is not None),
        key=lambda row: (row["latency_ms"], row["case"]),
    )
    ranking = [row for row in timed if is_exact(row)]
    margins = [time_ratio(row, ranking[0]) for row in ranking[1:]]
    known = [margin for margin in margins if margin is not None]
    return Race(ranking=ranking, margins=known, inexact=[row for row in timed if not is_exact(row)])


def longest_race(group: Group) -> tuple[int, Race] | None:
    """The race at the longest N that two exact backends finished, else at the longest that
    one did.
    """
    races = {
        n: race([row for row in group.rows if row["seq_len"] == n])
        for n in sorted({row["seq_len"] for row in group.rows})
    }
    ran = [n for n, found in races.items() if found.ranking]
    contested = [n for n in ran if races[n].margins]
    return (max(contested or ran), races[max(contested or ran)]) if ran else None


def finding(group: Group) -> str:
    """One sentence on the longest N at which there is something to compare."""
    found = longest_race(group)
    if found is None:
        timed = any(row.get("latency_ms") is not None for row in group.rows)
        return "no exact backend has a latency" if timed else "no case has a latency"
    n, fastest = found
    first, where = fastest.ranking[0], f"at {axis_text('seq_len', n)}"
    if not fastest.margins:
        return (
            f"{first['backend']} takes {time_text(first['latency_ms'])} {where}, with nothing to"
            f" compare it with{_beside(fastest)}"
        )
    rival = fastest.tie or 0
    margin, other = fastest.margins[rival], fastest.ranking[rival + 1]["backend"]
    between = (
        f"{number_text(margin.low)} to"
        f" {number_text(margin.high)}{'' if margin.paired else ', unpaired'}"
    )
    if not fastest.clear:
        why = f"ratio {between}" if isfinite(margin.low) else "no interval"
        return (
            f"no clear winner {where}: {first['backend']} and {other} are not told apart"
            f" ({why}){_beside(fastest)}"
        )
    takes = (
        f"{time_text(first['latency_ms'])}; {other} takes {number_text(margin.value)} times as long"
        f" ({between})"
    )
    return f"{first['backend']} is fastest {where}: {takes}{_beside(fastest)}"


def _beside(found: Race) -> str:
    """The fastest of each kind that is not exact, where it is faster than the fastest exact one by
    more than noise.
    """
    kinds: dict[str, str] = {}
    for row in found.inexact:
        ratio = time_ratio(row, found.ranking[0])
        if ratio is not None and ratio.high < 1:
            takes = (
                f"takes {number_text(ratio.value)} times as long as {found.ranking[0]['backend']}"
            )
            kinds.setdefault(row["exactness"], f"; {row['backend']} ({note(row)}) {takes}")
    return "".join(kinds.values())


def tally(groups: list[Group]) -> str:
    """How often each backend won: `sdpa is fastest in 14 of 16, no clear winner in 2`."""
    races = [found[1] for group in groups if (found := longest_race(group)) and found[1].margins]
    won = Counter(race.ranking[0]["backend"] for race in races if race.clear)
    said = [
        f"{backend} is fastest in {count} of {len(races)}" for backend, count in won.most_common()
    ]
    undecided = len(races) - won.total()
    said += [f"no clear winner in {undecided} of {len(races)}"] if undecided else []
    alone = len(groups) - len(races)
    said += [f"nothing to compare in {alone}"] if alone else []
    return ", ".join(said)
