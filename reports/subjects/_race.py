"""Which exact backend is fastest on one problem, and whether that is more than noise."""

from collections import Counter
from dataclasses import dataclass

from ..data.exactness import exactness_note, is_exact
from ..data.row_groups import Group, Row, axis_text
from ..formatting import number_text, time_text
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
    def tie(self) -> int | None:
        """The place in `margins` of the first one that is not clearly slower."""
        return next((place for place, margin in enumerate(self.margins) if not margin.clear), None)

    @property
    def clear(self) -> bool:
        """The first is faster than every other by more than noise."""
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


def tied(found: Race) -> list[Row]:
    """The fastest, and the others that are not clearly slower; empty without a tie."""
    others = [
        row
        for row, margin in zip(found.ranking[1:], found.margins, strict=True)
        if not margin.clear
    ]
    return [found.ranking[0], *others] if others else []


def tie_text(found: Race) -> str:
    """`tie: sdpa = naive`; empty without a tie."""
    names = [row["backend"] for row in tied(found)]
    return f"tie: {' = '.join(names)}" if names else ""


def longest_race(group: Group) -> tuple[int, Race] | None:
    """The race at the longest N that two exact backends finished, else that one finished."""
    races = {n: race([row for row in group.rows if row["seq_len"] == n]) for n in group.lengths}
    ran = [n for n, found in races.items() if found.ranking]
    contested = [n for n in ran if races[n].margins]
    return (max(contested or ran), races[max(contested or ran)]) if ran else None


def finding(group: Group) -> str:
    """One sentence on the longest N with something to compare."""
    found = longest_race(group)
    if found is None:
        timed = any(row.get("latency_ms") is not None for row in group.rows)
        return "no exact backend has a latency" if timed else "no case has a latency"
    n, fastest = found
    first, where = fastest.ranking[0], f"at {axis_text('seq_len', n)}"
    time, inexact = time_text(first["latency_ms"]), _faster_inexact(fastest)
    if not fastest.margins:
        here = [row for row in group.rows if row["seq_len"] == n]
        why = alone(here, fastest)
        return f"{first['backend']} takes {time} {where}{f', the {why}' if why else ''}{inexact}"
    rival = fastest.tie or 0
    margin, other = fastest.margins[rival], fastest.ranking[rival + 1]["backend"]
    if not fastest.clear:
        return f"{tie_text(fastest)} {where} ({margin.doubt}){inexact}"
    times = f"{number_text(margin.value)} times as long ({margin.bounds})"
    return (
        f"{first['backend']} is fastest {where}: {time}; {other} takes"
        f" {times}{margin.beside}{inexact}"
    )


def alone(rows: list[Row], found: Race) -> str:
    """Why there is nothing to compare the only exact backend with; "" if nothing else was tried."""
    exact = "exact " if found.inexact else ""
    others = {row["status"] for row in rows if row["status"] != "ok"}
    if not others:
        return ""
    return f"only {exact}one that {'fits' if others <= {'oom', 'predicted_oom'} else 'ran'}"


def _faster_inexact(found: Race) -> str:
    """The fastest inexact backend of each kind that is clearly faster than every exact one."""
    kinds: dict[str, str] = {}
    for row in found.inexact:
        ratio = time_ratio(row, found.ranking[0])
        if ratio is not None and ratio.high < 1:
            first = found.ranking[0]["backend"]
            times = f"{number_text(ratio.value)} times as long as {first} ({ratio.bounds})"
            text = f"; {row['backend']} ({exactness_note(row)}) takes {times}"
            kinds.setdefault(row["exactness"], text)
    return "".join(kinds.values())


def tally(groups: list[Group]) -> str:
    """How often each won: `At the longest N of each problem that two exact backends finished: sdpa
    is fastest in 14 of 16`.
    """
    races = [found[1] for group in groups if (found := longest_race(group)) and found[1].margins]
    if not races:
        return "No problem has a time of two exact backends"
    won = Counter(race.ranking[0]["backend"] for race in races if race.clear)
    texts = [
        f"{backend} is fastest in {count} of {len(races)}" for backend, count in won.most_common()
    ]
    if undecided := len(races) - won.total():
        texts.append(f"a tie in {undecided} of {len(races)}")
    if others := len(groups) - len(races):
        texts.append(f"nothing to compare in {others}")
    where = "At the longest N of each problem that two exact backends finished"
    return f"{where}: {', '.join(texts)}"
