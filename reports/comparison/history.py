"""A run against several earlier ones, which say how much runs of each case differ."""

from collections.abc import Iterable, Sequence
from itertools import islice

from ...harness.files.errors import BadInput
from ..data.noise_floor import COMMITS
from ..data.run_meta import Difference, fact_differences
from ..formatting import plural
from .compare import Comparison, Folder, Side, as_one, compare_sides, read_side
from .gate import Gate

FEWEST = 4
"""Earlier runs: by three, equal runs were told apart in 5.0 % of 500 simulated comparisons, by four
or more in 1.6 to 3.0 %.
"""


def unlike(one: Side, other: Side) -> list[Difference]:
    """Facts of machine, versions and settings that keep two runs apart, not what is compared."""
    return [one for one in fact_differences(one.meta, other.meta) if one.fact not in COMMITS]


def compare_history(
    earlier: Iterable[Folder],
    most: int,
    new: Folder,
    gate: Gate | None,
    *,
    only: Sequence[str] = (),
    salvage: bool = False,
) -> Comparison:
    """`new` against the `most` newest of the `earlier` runs, given newest first, that were measured
    on its machine with its versions and settings: their middle, and how much they differ.

    Raises BadRun, BadInput and NothingSelected.
    """
    now = read_side(new, salvage=salvage)
    sides = (read_side(path, salvage=salvage) for path in earlier)
    base = list(islice((side for side in sides if not unlike(side, now)), most))
    if len(base) < FEWEST:
        raise BadInput(
            f"last:{most}: {plural(len(base), 'finished run')} like {now.shown} before it (same"
            f" scenario, machine, versions and settings); wanted {FEWEST} or more; measure again,"
            " or compare with one run"
        )
    return compare_sides(as_one(base[::-1]), now, gate, only, allow=False, history=True)
