"""Does a case answer from memory? Calls with new and with repeated values of inputs, in turn."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

from ..measure.clock import Clock, now_s, processor_ns
from ..measure.input_values import InputValues

FEWEST_PAIRS = 2  # if they show nothing, nothing more is called
MEDIUM_MS = 20.0  # a longer call is first compared with those of its last block
LONG_MS = 100.0  # a longer call gets no more than one pair that shows nothing
PAIRS, MOST_PAIRS = 12, 48
PAIRS_S = 10.0  # of calls, for more than PAIRS: on a busy machine they are needed
RATIO = 1.2  # of the medians and of the shortest, new to repeated; if one is smaller, it ends
LEVEL = 1e-4  # of the rank test: how often calls that take equally long may look unlike


class Times(NamedTuple):
    """Of a call, ms. `processor`: that it took in all threads of this process, which other work on
    the machine changes less; where a GPU does the work, the clock's time again.
    """

    clock: float
    processor: float


def answers_from_memory(run: Callable[[], object], clock: Clock, values: InputValues) -> str:
    """What is wrong, or "". Results are not looked at; the inputs are not what they were after."""

    def times_ms(*, new: bool) -> Times:
        values.scale(new=new)
        clock.finish()
        begun, begun_ns = now_s(), processor_ns()
        run()
        clock.finish()
        found_ms, used_ms = (now_s() - begun) * 1e3, (processor_ns() - begun_ns) / 1e6
        return Times(found_ms, used_ms if values.device.type == "cpu" else found_ms)

    pairs: list[tuple[Times, Times]] = []
    until_s = now_s() + PAIRS_S
    while len(pairs) < (PAIRS if now_s() > until_s else MOST_PAIRS):
        pairs.append((times_ms(new=True), times_ms(new=False)))
        if len(pairs) >= FEWEST_PAIRS and not any(_longer(*one) for one in _by_kind(pairs)):
            return ""
    for (new, repeated), of in zip(_by_kind(pairs), ("", " of processor time"), strict=True):
        if _longer(new, repeated) and _slower(new, repeated):
            return (
                f"a call with new values of its inputs takes {median(new):.3g} ms{of}, a repeated"
                f" one {median(repeated):.3g} ms: it answers from memory"
            )
    return ""


def _by_kind(pairs: Sequence[tuple[Times, Times]]) -> list[tuple[list[float], list[float]]]:
    """New and repeated times, by the clock and of the processor."""
    return [([new[kind] for new, _ in pairs], [old[kind] for _, old in pairs]) for kind in (0, 1)]


def _longer(new: Sequence[float], repeated: Sequence[float]) -> bool:
    return all(of(new) >= RATIO * of(repeated) for of in (median, min))


def _slower(new: Sequence[float], repeated: Sequence[float]) -> bool:
    """By the exact rank test of Mann and Whitney (1947): no matter how the times are spread."""
    # Imported here: it takes a second, and few cases get this far.
    from scipy.stats import mannwhitneyu

    return bool(mannwhitneyu(new, repeated, alternative="greater", method="exact").pvalue < LEVEL)
