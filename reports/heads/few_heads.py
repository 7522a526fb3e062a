"""What the fewest heads of a run learn, against the number of heads that learns fastest."""

from collections.abc import Sequence

from ...harness.stats.intervals import Interval
from ..formatting import list_text, number_text, plural
from ..words import SEEN
from .figures import learnt_text
from .trained import TaskResult


def few_heads_text(found: Sequence[TaskResult]) -> str:
    """`1 head learns copy in 1.8 times the steps of the fastest number of heads, and text in 1.3
    times those of the fastest (seen here, not confirmed); recall, 1 head: 5 of 6 seeds learn it.`
    """
    sure = [one for one in found if one.counts[0].learnt_seeds == len(one.counts[0].until_learnt)]
    parts = []
    if sure:
        heads = " or ".join(dict.fromkeys(plural(one.counts[0].heads, "head") for one in sure))
        learns = "learns" if heads.startswith("1 ") else "learn"
        slower = [one for one in sure if (ratio := times_of_fewest(one)) and ratio.low > 1]
        fastest = [one for one in sure if one.fastest is one.counts[0]]
        other = [one for one in sure if one not in (*slower, *fastest)]
        ways = (
            (slower, f"in {_range_of_times(slower)} the steps of the fastest number of heads"),
            (other, f"in {_range_of_times(other)} those of the fastest ({SEEN.words})"),
            (fastest, "in the fewest steps of all"),
        )
        texts = [f"{list_text([one.task for one in some])} {how}" for some, how in ways if some]
        parts.append(f"{heads} {learns} {', and '.join(texts)}")
    parts += [
        f"{one.task}, {plural(one.counts[0].heads, 'head')}: {learnt_text(one.counts[0])}"
        for one in found
        if one not in sure
    ]
    return f"{'; '.join(parts)}."


def _range_of_times(some: Sequence[TaskResult]) -> str:
    """`1.6 to 9.2 times`"""
    times = [ratio.value for one in some if (ratio := times_of_fewest(one))]
    ends = dict.fromkeys(str(number_text(end(times))) for end in (min, max) if times)
    return f"{' to '.join(ends)} times"


def times_of_fewest(one: TaskResult) -> Interval | None:
    """Their steps over those of the fastest number, seed by seed."""
    return one.counts[0].times_the_steps_of(one.fastest)
