"""The named plans and the warm-up: how long and how often a run measures, and how long that takes.
The page repeats a case by them.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

PLAN_FIELDS = (
    "processes",
    "min_blocks",
    "max_blocks",
    "precision_ratio",
    "budget_s",
    "windows",
    "window_s",
)
PLANS: dict[str, dict[str, int | float]] = {
    name: dict(zip(PLAN_FIELDS, values, strict=True))
    for name, values in {
        "quick": (4, 3, 3, 0.05, 2.0, 1, 1.0),
        "standard": (10, 2, 3, 0.03, 10.0, 3, 6.0),
        "rigorous": (16, 2, 9, 0.01, 60.0, 5, 6.0),
    }.items()
}

WARM_UP_S = 0.3  # at least, by all processes of the plan together
LEAST_S = 0.05  # by each, however many there are
WARM_AGAIN_S = 0.1  # at most that, if a process has warmed the case up before: its memory is new
MAX_WARM_UP_S = 5.0  # or the process's share of the plan's time per case, if that is less
MOST_TRIES = 3  # of a block that was disturbed
CALLS_TO_TELL = 10  # with fewer it is not known whether the times are stationary

# Two units have a useless interval (t = 12.7), so even a spent budget waits for the third.
FEWEST_UNITS = 3
START_AHEAD_S = 1.0  # of a process that starts while the first checks its cases
BLOCK_MS = {"cpu": 10.0, "cuda": 20.0}
"""A block calls a case for about this long, so that one slow reading is not a whole block."""


def first_warm_up_s(processes: int) -> float:
    """The shortest first warm-up of a case in each of so many processes."""
    return max(LEAST_S, WARM_UP_S / processes)


def most_warm_up_s(share_s: float, least_s: float) -> float:
    """The end of a warm-up whose times do not become stationary."""
    return min(MAX_WARM_UP_S, max(least_s, share_s))


def expected_warm_up_s(call_s: float, share_s: float, least_s: float) -> float:
    """How long a warm-up takes."""
    usual_s = min(CALLS_TO_TELL * call_s, most_warm_up_s(share_s, least_s))
    return max(least_s, usual_s, (1 if call_s > WARM_UP_S else 2) * call_s)


def sampling_s(
    call_s: float,
    device: str,
    *,
    processes: int,
    min_blocks: int,
    max_blocks: int,
    budget_s: float,
    start_s: float = 0.0,
) -> float:
    """How long the warm-ups and blocks of a case take. `start_s`: of each process, before."""
    block_s = max(BLOCK_MS[device] / 1e3, call_s)
    blocks = min(processes * max_blocks, max(FEWEST_UNITS, ceil(budget_s / block_s)))
    of = min(processes, blocks)  # each has one at least, before any has more
    again = _rounds(min_blocks, min(ceil(blocks / of), max_blocks)) - 1 if of > 1 else 0
    least_s = first_warm_up_s(processes)
    first_s, again_s = (
        expected_warm_up_s(call_s, budget_s / processes, one_s)
        for one_s in (least_s, min(WARM_AGAIN_S, least_s))
    )
    return of * (start_s + first_s + again * again_s) + blocks * block_s


def _rounds(min_blocks: int, blocks: int) -> int:
    """How often each process measures until every one has so many blocks (sampling.Sampler)."""
    rounds, target = 1, min_blocks
    while target < blocks:
        rounds, target = rounds + 1, ceil(target * 4 / 3)
    return rounds


def reads_a_cache(problem: Mapping[str, Any]) -> bool:
    """Whether the keys of a problem, or of a row, were there before its queries, as in a decoder:
    fewer queries than keys, in scope core, without gradients.
    """
    fewer: bool = problem["seq_len"] < problem["kv_seq_len"]
    return problem["scope"] == "core" and problem["passes"] == "forward" and fewer
