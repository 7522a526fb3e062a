"""How long a case is called before it is timed. Imports no torch: reports need it too."""

WARM_UP_S = 0.3  # at least, by all processes of the plan together
LEAST_S = 0.05  # by each, however many there are
WARM_AGAIN_S = 0.1  # at most that, if a process has warmed the case up before: its memory is new
MAX_WARM_UP_S = 5.0  # or the process's share of the plan's time per case, if that is less
CALLS_TO_TELL = 10  # with fewer it is not known whether the times are stationary


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
