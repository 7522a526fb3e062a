"""The claims on how time grows over N and d: C2, C11, C12, C17 and C18."""

from collections.abc import Iterator, Sequence

from ...harness.stats.intervals import Interval
from ..data.exactness import RECURRENT
from ..data.polynomial import bytes_over_n, flops_over
from ..data.row_groups import Group, Row, backends, family, groups
from ..formatting import count_text, number_text
from ..growth_fit import EXPONENT_MARGIN, Growth, growths_of, interval_text
from .statement import LINEAR, STRIDED, Measured, claim
from .times import PAST_CROSSING
from .verdict import BUSY, ClaimVerdict, Evidence, by_interval, exactly, jointly

EXPONENTS = dict.fromkeys(LINEAR, 1.0) | {STRIDED: 1.5}
SAME_CROSSING = 2  # at twice or half the N of a crossing the smaller part is still a third
LONG, BELOW, WHERE = "N² for long sequences", "N below", "where FLOPs cross"
COSTS = ("FLOPs", "time")
RECURRENCE = ("growth with N", "growth with d")


@claim(
    "C2",
    "A layer's time is O(N² d) for long sequences and O(N d²) below, and changes where its FLOPs"
    " do.",
    tested=(
        "a + b N + c N² fitted to the layer's time: intervals of b and c above 0; crossover b/c"
        " within 2 times that of the FLOPs"
    ),
    needs="scope: [layer], five lengths or more",
    halves=(LONG, BELOW, WHERE),
)
def two_regimes(run: Measured) -> Iterator[Evidence]:
    for backend, _, found, crossing in _layers(run):
        verdicts = _regimes(found, crossing)
        text = f"N^{interval_text(found.exponents[-1])} at N = {count_text(found.lengths[-1])}"
        texts = {LONG: text, BELOW: f"{interval_text(found.per_token_ms)} ms per N"}
        texts[WHERE] = f"{_overtakes(found)}; by FLOPs at N = {number_text(crossing)}"
        for half, verdict in verdicts.items():
            if verdict == "not run":
                why = f"; too close to the shortest N, {found.lengths[0]}"
                yield Evidence(backend, verdict, texts[half] + why, half)
            elif doubt := _doubt(found):
                yield Evidence(backend, "not decided", texts[half] + doubt, half)
            else:
                yield Evidence(backend, verdict, texts[half], half)


def _doubt(found: Growth) -> str:
    """Why a fit decides nothing, or ""."""
    if found.describes:
        return BUSY if found.disturbed else ""
    n, off = found.worst
    return f"; the formula is off by {number_text(off)} times at N = {count_text(n)}"


def _layers(run: Measured) -> Iterator[tuple[str, Group, Growth, float]]:
    """Each fit of a layer's time over N, with the N at which its FLOPs cross."""
    layers = [row for row in run.quadratic if row["scope"] == "layer"]
    for backend in backends(layers):
        for group, found in growths_of(layers, backend):
            counts = flops_over(group.rows)
            # a mask may leave no N² to be taken over by
            if counts and counts.quadratic > 0:
                yield backend, group, found, float(counts.linear / counts.quadratic)


def _overtakes(found: Growth) -> str:
    if (over := found.overtaking) is None:
        return "no N² found"
    return f"N² takes over at N = {interval_text(over)}"


def _regimes(found: Growth, crossing: float) -> dict[str, ClaimVerdict]:
    """By half.

    What FLOPs say of N below the crossing is tested if a quarter of it was measured, or less. There
    four fifths of them are in N: if time is in N² even there, it refutes the statement.
    """
    over, n, c = found.overtaking, found.per_token_ms, found.per_pair_ms
    is_past = found.lengths[-1] >= PAST_CROSSING * crossing
    where = (crossing / SAME_CROSSING, crossing * SAME_CROSSING)
    square: ClaimVerdict = "supported" if c.low > 0 else "not decided"
    verdicts: dict[str, ClaimVerdict] = {
        LONG: "refuted" if is_past and found.exponents[-1].high < 1.5 else square,
        BELOW: "supported" if n.low > 0 else "not decided",
        WHERE: by_interval(over.low, over.high, where) if over else "not decided",
    }
    if found.lengths[0] * PAST_CROSSING > crossing:
        verdicts |= {BELOW: "not run", WHERE: "not run"}
    elif over and over.high < crossing / PAST_CROSSING:
        verdicts[BELOW] = "refuted"
    return verdicts


@claim(
    "C17",
    "The quadratic part, N² d, is linear in d.",
    tested=(
        "exponent over d_model at the widest one, of a core with one number of heads, within 0.1 of"
        " 1: of FLOPs, an exact count, and of time"
    ),
    needs="scope: [core], five d_model or more",
    halves=COSTS,
)
def quadratic_part(run: Measured) -> Iterator[Evidence]:
    cores = [row for row in run.quadratic if row["scope"] == "core"]
    yield from _flops_over_width(cores, 1.0)
    yield from _over_width(cores, 1.0, COSTS[1])


@claim(
    "C18",
    "The projections, N d², are quadratic in d.",
    tested="the same of a layer at N of at most an eighth of the widest d_model, within 0.1 of 2",
    needs="scope: [layer], five d_model or more, the widest at least 8 N",
    halves=COSTS,
)
def projections(run: Measured) -> Iterator[Evidence]:
    layers = [row for row in run.quadratic if row["scope"] == "layer"]
    widest = max((row["d_model"] for row in layers), default=0)
    short = [row for row in layers if 8 * row["seq_len"] <= widest]
    yield from _flops_over_width(short, 2.0)
    yield from _over_width(short, 2.0, COSTS[1])


def _flops_over_width(rows: Sequence[Row], claimed: float) -> Iterator[Evidence]:
    for group in groups(rows, "d_model"):
        if counts := flops_over(group.rows, "d_model"):
            d = counts.solved[-1]
            exponent = float((counts.linear * d + 2 * counts.quadratic * d * d) / counts.at(d))
            near = abs(exponent - claimed) <= EXPONENT_MARGIN
            text = f"d^{number_text(exponent)} at d = {d}, {group.at}"
            yield Evidence("FLOPs", exactly(near), text, COSTS[0])


def _over_width(rows: Sequence[Row], claimed: float, half: str) -> Iterator[Evidence]:
    """By time."""
    for backend in backends(rows):
        for group, found in growths_of(rows, backend, "d_model"):
            exponent = _exponent(found, by_slope=False)
            text = f"d^{interval_text(exponent)} in time at d = {found.lengths[-1]}, {group.at}"
            verdict, why = _grows(found, exponent, claimed)
            yield Evidence(backend, verdict, text + why, half)


@claim(
    "C11",
    "Local and random patterns, Linformer and Performer are linear in N; strides of sqrt(N) give"
    " N^1.5.",
    tested="exponent of time at the longest N within 0.1; no N² in the exact bytes",
    needs=(
        "backends sparse_local, sparse_random, sparse_strided, linformer and performer, five"
        " lengths or more"
    ),
    halves=tuple(EXPONENTS),
)
def linear_growth(run: Measured) -> Iterator[Evidence]:
    for backend in backends(row for row in run.every if family(row["backend"]) in EXPONENTS):
        strided = family(backend) == STRIDED
        for group, found in growths_of(run.every, backend):
            exponent = _exponent(found, by_slope=strided)
            verdict, why = _grows(found, exponent, EXPONENTS[family(backend)])
            text = f"N^{interval_text(exponent)} in time at N = {count_text(found.lengths[-1])}"
            verdicts = [verdict]
            memory = None if strided else bytes_over_n(group.rows, backend)
            if memory is not None and memory.exact:
                verdicts.append(exactly(memory.quadratic == 0))
                text += f", {'no' if memory.quadratic == 0 else 'some'} N² in bytes"
            yield Evidence(backend, jointly(verdicts), text + why, half=family(backend))


@claim(
    "C12",
    "A recurrent layer costs O(N d²).",
    tested=(
        "exponents of time at the longest N within 0.1 of 1 and at the widest d_model within 0.1 of"
        " 2"
    ),
    needs="backend rnn, five lengths or more, five d_model or more",
    halves=RECURRENCE,
)
def recurrent(run: Measured) -> Iterator[Evidence]:
    rows = [row for row in run.every if family(row["backend"]) in RECURRENT]
    for backend in backends(rows):
        for _, found in growths_of(rows, backend):
            exponent = _exponent(found, by_slope=False)
            verdict, why = _grows(found, exponent, 1.0)
            text = f"N^{interval_text(exponent)} in time{why}"
            yield Evidence(backend, verdict, text, RECURRENCE[0])
    yield from _over_width(rows, 2.0, RECURRENCE[1])


def _exponent(found: Growth, *, by_slope: bool) -> Interval:
    """At the longest N by the formula.

    As measured over the last three lengths if `by_slope`, or if the formula does not fit.
    """
    measured = next((slope for slope in reversed(found.slopes) if slope is not None), None)
    use_slope = measured is not None and (by_slope or not found.describes)
    return measured if measured and use_slope else found.exponents[-1]


def _grows(fit: Growth, found: Interval, claimed: float) -> tuple[ClaimVerdict, str]:
    """Inconclusive below the claim: constant cost hides the growth that a longer N may show.

    And why it is not decided, in words.
    """
    if fit.disturbed:
        return "not decided", BUSY
    margin = (claimed - EXPONENT_MARGIN, claimed + EXPONENT_MARGIN)
    if found.high < margin[0]:
        return "not decided", ": constant cost may hide more, and a longer or wider one would tell"
    return by_interval(found.low, found.high, margin), ""
