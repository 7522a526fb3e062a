"""Does a case answer from memory? Calls with new and with repeated values of inputs, in turn."""

from collections.abc import Callable
from statistics import median

from ..measure.clock import Clock, now_s
from ..measure.input_values import InputValues
from ..measure.output_check import Fingerprint

FEWEST_PAIRS, PAIRS, MOST_PAIRS = 4, 12, 48
PAIRS_S = 2.0  # of calls, for more than PAIRS: on a busy machine short ones need them
RATIO = 1.2  # of the medians, new to repeated; after the fewest pairs a smaller one ends it
LEVEL = 1e-4  # of the rank test: how often calls that take equally long may look unlike


def recheck(
    run: Callable[[], object],
    clock: Clock,
    values: InputValues,
    fingerprint: Fingerprint,
) -> str:
    """What is wrong, or "". Every result is looked at."""

    def call_ms(*, new: bool) -> float:
        signs = values.flipped, values.columns
        values.renew()
        if new:
            values.renew()
        else:
            values.flip(*signs)  # as much was written before either call
        clock.finish()
        begun = now_s()
        result = run()
        clock.finish()
        found_ms = (now_s() - begun) * 1e3
        fingerprint.look(result, values.flipped, values.columns, must=True)
        return found_ms

    pairs: list[tuple[float, float]] = []
    until_s = now_s() + PAIRS_S
    while not fingerprint.complaint and len(pairs) < (PAIRS if now_s() > until_s else MOST_PAIRS):
        pairs.append((call_ms(new=True), call_ms(new=False)))
        new, repeated = (median(one) for one in zip(*pairs, strict=True))
        if len(pairs) >= FEWEST_PAIRS and new < RATIO * repeated:
            return fingerprint.complaint
    if fingerprint.complaint or not _slower(*zip(*pairs, strict=True)):
        return fingerprint.complaint
    return (
        f"a call with new values of its inputs takes {new:.3g} ms, a repeated one"
        f" {repeated:.3g} ms: it answers from memory"
    )


def _slower(new: tuple[float, ...], repeated: tuple[float, ...]) -> bool:
    """By the exact rank test of Mann and Whitney (1947): no matter how the times are spread."""
    # Imported here: it takes a second, and few cases get this far.
    from scipy.stats import mannwhitneyu

    return bool(mannwhitneyu(new, repeated, alternative="greater", method="exact").pvalue < LEVEL)
