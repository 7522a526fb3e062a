"""Where a baseline took another time beside a backend from outside than in the run's workers."""

from collections.abc import Iterator, Sequence

from ...harness.files.printable import visible
from ..data.row_groups import Row, by
from ..formatting import number_text, plural
from ..words import CONFIRMED
from .pair import baseline_ratio


def differing_baselines(rows: Sequence[Row]) -> Iterator[str]:
    """`Beside mine, sdpa took 1.4 times its time.`; `... 1.2 to 1.4 times its time in 2 of 3
    cases.` Only of what is confirmed.
    """
    known = [(row, ratio) for row in rows if (ratio := baseline_ratio(row)) is not None]
    for (mine, base), some in by(known, lambda one: (one[0]["backend"], one[0]["beside"])).items():
        values = sorted(ratio.value for _, ratio in some if ratio.mark == CONFIRMED)
        if values:
            times = " to ".join(dict.fromkeys(number_text(one) for one in (values[0], values[-1])))
            where = f" in {len(values)} of {plural(len(some), 'case')}" if len(some) > 1 else ""
            yield f"Beside {visible(mine)}, {visible(base)} took {times} times its time{where}."
