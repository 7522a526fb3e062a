"""Which backend is fastest on one problem, and whether that is more than noise."""

from collections import Counter
from dataclasses import dataclass
from math import isfinite

from ..words import number_text, time_text
from .problems import Group, Row, axis_text
from .ratio import Ratio, time_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """The timed rows of one problem, fastest first; `margin` is how many times as long the second takes as the first."""

    ranking: list[Row]
    margin: Ratio | None


def race(rows: list[Row]) -> Race:
    ranking = sorted((row for row in rows if row.get("latency_ms") is not None), key=lambda row: (row["latency_ms"], row["case"]))
    return Race(ranking=ranking, margin=time_ratio(ranking[1], ranking[0]) if len(ranking) > 1 else None)


def longest_race(group: Group) -> tuple[int, Race] | None:
    """The race at the longest N that two backends finished, else at the longest that one did."""
    races = {n: race([row for row in group.rows if row["seq_len"] == n]) for n in sorted({row["seq_len"] for row in group.rows})}
    ran = [n for n, found in races.items() if found.ranking]
    contested = [n for n in ran if races[n].margin is not None]
    return (max(contested or ran), races[max(contested or ran)]) if ran else None


def finding(group: Group) -> str:
    """One sentence on the longest N at which there is something to compare."""
    found = longest_race(group)
    if found is None:
        return "no case has a latency"
    n, fastest = found
    first, where = fastest.ranking[0], f"at {axis_text('seq_len', n)}"
    if fastest.margin is None:
        return f"{first['backend']} takes {time_text(first['latency_ms'])} {where}, with nothing to compare it with"
    margin, second = fastest.margin, fastest.ranking[1]["backend"]
    between = f"{number_text(margin.low)} to {number_text(margin.high)}{'' if margin.paired else ', unpaired'}"
    if not margin.clear:
        why = f"ratio {between}" if isfinite(margin.low) else "no interval"
        return f"no clear winner {where}: {first['backend']} and {second} are not told apart ({why})"
    takes = f"{time_text(first['latency_ms'])}; {second} takes {number_text(margin.value)} times as long ({between})"
    return f"{first['backend']} is fastest {where}: {takes}"


def tally(groups: list[Group]) -> str:
    """How often each backend won: `sdpa is fastest in 14 of 16, no clear winner in 2`."""
    races = [found[1] for group in groups if (found := longest_race(group)) and found[1].margin is not None]
    won = Counter(race.ranking[0]["backend"] for race in races if race.margin is not None and race.margin.clear)
    said = [f"{backend} is fastest in {count} of {len(races)}" for backend, count in won.most_common()]
    undecided = len(races) - won.total()
    said += [f"no clear winner in {undecided} of {len(races)}"] if undecided else []
    alone = len(groups) - len(races)
    said += [f"nothing to compare in {alone}"] if alone else []
    return ", ".join(said)
