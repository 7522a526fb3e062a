"""Where a series of runs changes its level: a rank test of every place, for many cases at once.

Each place between two runs compares the ranks of the runs before it with those behind it, up to the
next change; the largest standardised difference of any place counts (Pettitt 1979, Applied
Statistics 28(2); standardised as in Hawkins and Deng 2010, Journal of Quality Technology 42(2)).
Ranks ignore how far off a disturbed run is; the place is where absolute deviations from the medians
of both sides are least. The p-value is that of the runs in random orders: it
holds whatever the distribution of runs is, as long as all orders are as likely where nothing
changes. That is not so for times of a machine that drifts, and is for ratios to what drifts alike.

One order is that of all cases, whose largest statistic counts (Westfall and Young 1993,
Resampling-based multiple testing): where nothing changes, at most 5 % of analyses name any change
of any case, however many there are. A case that changes is cut there, and its parts are tested with
the others again until nothing more is found: binary segmentation (Vostrikova 1981, Soviet
Mathematics Doklady 24), with permutations in each round as in E-divisive (Matteson and James 2014,
Journal of the American Statistical Association 109(505)).
"""

from collections.abc import Sequence

import numpy as np

LEVEL = 0.05
ORDERS = 1999
FEWEST_BESIDE = 3
"""Runs before a change and from it on: no two of any number of runs have unlikely ranks."""
CHANCES = 100_000  # random orders of one case
SURE_LEVEL = 0.04  # ORDERS show a chance of it as less than LEVEL, by two standard deviations
FEWEST_RUNS = 8
"""Of fewer, chance alone puts all low ones before all high ones in more than 5 % of orders."""


def change_points(series: Sequence[Sequence[float]], seed: int = 0) -> list[list[int]]:
    """For each case the runs from which on its level is another one, in order.

    `series`: [case][run] in order of time, logarithms if levels are ratios; NaN where a case has no
    value. The same series give the same answer. Raises ValueError if cases differ in their number
    of runs.
    """
    values = np.array(series, dtype=float)
    found: list[list[int]] = [[] for _ in series]
    if not values.size:
        return found
    keys = np.random.default_rng(seed).random((ORDERS, values.shape[1]))
    parts = [(case, np.flatnonzero(~np.isnan(row))) for case, row in enumerate(values)]
    while tested := [part for part in parts if len(part[1]) >= 2 * FEWEST_BESIDE]:
        highest, orders, differences = np.zeros(ORDERS), dict[bytes, np.ndarray](), []
        for case, runs in tested:
            ranks = _centred_ranks(values[case, runs])
            if (key := runs.tobytes()) not in orders:
                orders[key] = np.argsort(keys[:, runs], axis=1)
            highest = np.maximum(highest, _differences(ranks[orders[key]]).max(axis=1))
            differences.append(_differences(ranks))
        parts = []
        for (case, runs), mine in zip(tested, differences, strict=True):
            as_high = np.count_nonzero(highest >= mine.max() - 1e-9)
            if (1 + as_high) / (1 + ORDERS) > LEVEL:
                parts.append((case, runs))
                continue
            place = _place(values[case, runs])
            found[case].append(int(runs[place]))
            parts += [(case, runs[:place]), (case, runs[place:])]
        if len(parts) == len(tested):
            break
    return [_placed(row, sorted(runs)) for row, runs in zip(values, found, strict=True)]


def fewest_beside(runs: int, cases: int) -> int | None:
    """With how many of so many runs on either side a change is found for sure, if it is large and
    one of so many cases changes; None: wherever it is, chance may hide it.
    """
    if runs < 2 * FEWEST_BESIDE:
        return None
    orders = np.argsort(np.random.default_rng(0).random((CHANCES, runs)), axis=1)
    chance = _differences(orders - (runs - 1) / 2).max(axis=1)
    apart = _differences(np.arange(runs) - (runs - 1) / 2)  # all low ones before all high ones
    for beside in range(FEWEST_BESIDE, runs // 2 + 1):
        alone = np.mean(chance >= apart[beside - FEWEST_BESIDE] - 1e-9)
        if 1 - (1 - alone) ** cases <= SURE_LEVEL:
            return beside
    return None


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    """Of equal values the mean rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    centred: np.ndarray = ranks - ranks.mean()
    return centred


def _placed(row: np.ndarray, changes: Sequence[int]) -> list[int]:
    """Each change between its neighbours only: when it was found, others were in its way (Bai 1997,
    Econometric Theory 13(3)).
    """
    known = np.flatnonzero(~np.isnan(row))
    edges = [0, *np.searchsorted(known, changes), len(known)]
    for number in range(1, len(edges) - 1):
        begin, end = edges[number - 1], edges[number + 1]
        edges[number] = begin + _place(row[known[begin:end]])
    return [int(known[edge]) for edge in edges[1:-1]]


def _place(values: np.ndarray) -> int:
    """How many come before the change: where the values differ least from the medians on either
    side of it. Ranks say that there is one, and a run at the low end of its own level moves them.
    """
    places = range(FEWEST_BESIDE, len(values) - FEWEST_BESIDE + 1)
    off = [
        sum(np.abs(side - np.median(side)).sum() for side in (values[:place], values[place:]))
        for place in places
    ]
    return places[int(np.argmin(off))]


def _differences(ranks: np.ndarray) -> np.ndarray:
    """How high the first few of the last axis rank, from FEWEST_BESIDE on until as few are left, in
    standard deviations of random orders.
    """
    count = ranks.shape[-1]
    first = np.arange(FEWEST_BESIDE, count - FEWEST_BESIDE + 1)
    sums = np.abs(np.cumsum(ranks, axis=-1)[..., first - 1])
    squares = np.square(ranks).sum(axis=-1, keepdims=True)
    spread = np.sqrt(first * (count - first) * squares / (count * (count - 1)))
    found: np.ndarray = np.divide(sums, spread, out=np.zeros_like(sums), where=spread > 0)
    return found
