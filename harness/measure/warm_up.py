"""How long a case is called before it is timed. Imports no torch: a forecast needs it too."""

WARM_UP_S = 0.3  # at least
WARM_AGAIN_S = 0.1  # at least, if this process has warmed the case up before: its memory is new
MAX_WARM_UP_S = 5.0  # or the plan's time per case, if that is less
CALLS_TO_TELL = 10  # with fewer it is not known whether the times are stationary


def most_warm_up_s(budget_s: float, least_s: float = WARM_UP_S) -> float:
    """The end of a warm-up whose times do not become stationary."""
    return min(MAX_WARM_UP_S, max(least_s, budget_s))
