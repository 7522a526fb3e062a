"""The words of verdicts: what the interval of a ratio lets one say."""

from collections.abc import Collection, Mapping
from math import isnan
from typing import Literal, NamedTuple

Word = Literal["same", "more", "less", "not decided"]
NOT_DECIDED: Word = "not decided"
"""The one word for what no interval and no test decides, on pages, in tables and in files. A "tie"
is what was shown to be the same.
"""


class Mark(NamedTuple):
    """How sure a ratio is, as a reader sees it: a sign for cells, the words for sentences."""

    sign: str
    words: str

    @property
    def short(self) -> str:
        """Beside a picture: `◐ not confirmed`."""
        return f"{self.sign} {self.words.rpartition(', ')[2]}"


CONFIRMED = Mark("●", "confirmed")  # the interval excludes 1
SEEN = Mark("◐", "seen here, not confirmed")  # the interval has 1
SAME = Mark("=", "same")  # shown to be equal within the margin
NOISY = Mark("–", "too noisy")  # the interval is wider than this ratio, or there is none
NOISY_RATIO = 2.0
MARKS = (CONFIRMED, SEEN, SAME, NOISY)
REACH = "Confirmed holds for other processes of this run; another run may differ"
SAME_RATIO = 0.05  # costs within this margin count as the same
DISTURBED = ", while other work disturbed most blocks"
"""After numbers that decide nothing for that reason."""
BY_PROCESSOR_TIME = "by processor time"
"""After ratios of calls whose time by the clock other work disturbed."""


TIMES: Mapping[str, str] = {"more": "slower", "less": "faster"}
"""Words of ratios of times, where a noun does not say it."""


def mark_of(low: float, high: float, margin_ratio: float = SAME_RATIO) -> Mark:
    """Of a ratio by its interval, or of an exact one: the four marks, each of which holds where no
    earlier one does.
    """
    if isnan(low) or isnan(high):
        return NOISY
    edge = 1 + margin_ratio
    if low >= 1 / edge and high <= edge:
        return SAME
    if not low <= 1 <= high:
        return CONFIRMED
    return NOISY if high > NOISY_RATIO * low else SEEN


def meaning_of(marks: Collection[Mark]) -> str:
    """Of the signs in a table: `● confirmed in this run. ◐ seen here, not confirmed.`"""
    more = {CONFIRMED: " in this run", SAME: f" within {100 * SAME_RATIO:g} %"}
    return " ".join(f"{one.sign} {one.words}{more.get(one, '')}." for one in MARKS if one in marks)
