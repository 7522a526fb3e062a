"""A run against several earlier ones, which say how much runs of each case differ."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from math import log, sqrt

from ...harness.files.errors import BadInput
from ...harness.stats.contrasts import Spread, spread
from ..data.noise_floor import is_like
from ..data.row_groups import LoadedRow, Row
from ..formatting import plural
from ..words import SAME_RATIO
from .compare import Comparison, Folder, as_one, compare_sides, read_sides
from .gate import Gate

FEWEST = 4
"""Earlier runs: by three, equal runs were told apart in 5.0 % of 500 simulated comparisons, by four
or more in 1.6 to 3.0 %.
"""


def compare_history(
    earlier: Iterable[Folder],
    most: int,
    new: Folder,
    gate: Gate | None,
    *,
    only: Sequence[str] = (),
    margin_ratio: float = SAME_RATIO,
    salvage: bool = False,
) -> Comparison:
    """`new` against the `most` newest of the `earlier` runs, given newest first, that were measured
    on its machine with its versions and settings: their middle, and how much they differ.

    Raises BadRun, BadInput and NothingSelected.
    """
    (now,) = read_sides([new], salvage=salvage)
    sides = (side for path in earlier for side in read_sides([path], salvage=salvage))
    base = list(islice((side for side in sides if is_like(side.meta, now.meta)), most))
    if len(base) < FEWEST:
        raise BadInput(
            f"last:{most}: {plural(len(base), 'finished run')} like {now.shown} before it (same"
            f" scenario, machine, versions and settings); wanted {FEWEST} or more; measure again,"
            " or compare with one run"
        )
    before = as_one(base[::-1])
    now = replace(now, rows=[beside(row, before.by_id.get(row["case"])) for row in now.rows])
    return compare_sides(before, now, gate, only, margin_ratio, allow=False, history=True)


def beside(row: Row, earlier: Row | None) -> Row:
    """With what the runs of its case differ by in place of what the device's do. A new run draws
    that once more; as one estimate gives it and the error of their mean, both together have the
    degrees of freedom of that (Satterthwaite).
    """
    units = [process[0][0] for process in (earlier or {}).get("block_ms") or ()]
    learnt = spread([[log(ms) for ms in units]])
    if learnt is None:
        return row
    one = Spread(sd=learnt.sd / sqrt(2), degrees=learnt.degrees / (1 + 2 / len(units)))
    noise = {"between_runs_ratio": one.ratio, "between_runs_degrees": one.degrees}
    return LoadedRow(row | noise)
