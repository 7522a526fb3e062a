"""Quantities of claims from rows: exact bytes, ratios of times, and growth over N, d and h."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import inf, isnan, nan
from typing import Any

from ..contrasts import Contrast, against_one_head, contrasts, share_width
from ..data.exactness import RECURRENT
from ..data.polynomial import bytes_over_n, coefficient_text, flops_over
from ..data.row_groups import AXES, Row, axis_title, backends, by, family, groups
from ..formatting import count_text, in_brackets, number_text
from ..growth_fit import growths_of, interval_text
from ..judging.pair import time_ratio
from ..judging.ratio import Ratio
from ..subjects.correctness import ALLOWED_RATIO
from ..words import DISTURBED, SAME_RATIO
from .claim import Found, Measured

EQUAL = (1 / (1 + SAME_RATIO), 1 + SAME_RATIO)  # ratios that count as equal
BUSY = f"{DISTURBED}: to be measured again on an idle machine"
ITEM_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
PAST_CROSSING = 4  # times the N at which FLOPs cross: there four fifths of them are in N²
Some = Iterator[Found]


def exactly(of: str, value: float | Fraction, text: str, doubt: str = "") -> Found:
    """What is counted, without noise."""
    return Found(of, float(value), float(value), text, doubt)


def of_ratio(row: Row, ratio: Ratio, what: str, doubt: str = "", share: float = 1) -> Found:
    """A ratio of times, over the share that was claimed."""
    doubt = doubt or BUSY * ratio.disturbed
    low, high = ratio.low / share, ratio.high / share
    return Found(row["backend"], low, high, f"{what}: {ratio.text}", doubt)


def pair(rows: Sequence[Row], axis: str, one: str, other: str) -> tuple[Row, Row] | None:
    """Two rows of one problem that differ in this, if both are there."""
    found = {row[axis]: row for row in rows}
    return (found[one], found[other]) if one in found and other in found else None


# ---- bytes and heads -----------------------------------------------------------------------------


def score_matrices(run: Measured) -> Some:
    """Two of them are alive at the peak of `fused` without gradients: scores and weights."""
    wanted = {"backend": "fused", "passes": "forward", "causal": False, "mask": "none"}
    plain = [row for row in run.rows if all(row[name] == is_ for name, is_ in wanted.items())]
    for group in groups(plain, "seq_len"):
        found, of = bytes_over_n(group.rows, "fused"), group.problem
        if found and of["kv_seq_len"] == "N" and of["dtype"] in ITEM_BYTES:
            two = 2 * of["batch"] * of["heads"] * ITEM_BYTES[of["dtype"]]
            text = f"{coefficient_text(found.quadratic)} bytes per N², where 2 B h e is {two}"
            doubt = "" if found.exact else ", but no fourth length agrees"
            yield exactly("fused", found.quadratic / two, f"{text}, {group.label}", doubt)


def bytes_of_heads(run: Measured) -> Some:
    """By N² coefficients; of a backend without them, by peaks."""
    found = {backend: list(_coefficients(run.rows, backend)) for backend in backends(run.rows)}
    for some in found.values():
        yield from some
    for group, costs in against_one_head([row for row in run.rows if not found[row["backend"]]]):
        known = [one for one in costs if share_width(group) and not isnan(one.peak_bytes)]
        for backend, mine in by(known, lambda one: one.backend).items():
            worst = max(mine, key=lambda cost: cost.peak_bytes)
            text = f"{number_text(worst.peak_bytes)} times with {worst.heads} heads at {group.at}"
            doubt = "" if worst.of_heads else f"; {worst.kernels}"
            yield exactly(backend, worst.peak_bytes, text, doubt)


def _coefficients(rows: Sequence[Row], backend: str) -> Some:
    """Per problem except N and h, the exact N² coefficient of the worst h over that of one."""
    together: dict[tuple[Any, ...], dict[int, Fraction]] = {}
    mine = [row for row in rows if row["backend"] == backend]
    if len({row["kernel"] for row in mine if row.get("kernel")}) > 1:
        return  # heads that ran another kernel: peaks say so
    for group in groups(mine, "seq_len"):
        found, of = bytes_over_n(group.rows, backend), group.problem
        if found is not None and found.exact and share_width(group):
            rest = tuple(value for axis, value in of.items() if axis != "heads")
            where = f"{of['passes']}, {of['scope']}"
            together.setdefault((where, *rest), {})[of["heads"]] = found.quadratic
    for (where, *_), by_heads in together.items():
        if 1 in by_heads and len(by_heads) > 1:
            one = by_heads.pop(1)
            most, heads = max((found, heads) for heads, found in by_heads.items())
            text = f"{coefficient_text(most)} bytes per N² with {heads} heads,"
            text += f" {coefficient_text(one)} with one, {where}"
            yield exactly(backend, most / one if one else inf if most else 1, text)


def time_of_heads(run: Measured) -> Some:
    for group, costs in against_one_head(run.rows):
        for cost in costs if share_width(group) else ():
            if (found := cost.time) is not None:
                doubt = "" if cost.of_heads else f"; {cost.kernels}"
                doubt = doubt or found.why_not_decided or BUSY * found.is_busy
                yield of_ratio(cost.row, found, f"h = {cost.heads} at {group.at}", doubt)


def _loops(run: Measured) -> Iterator[tuple[tuple[Row, Row], Ratio, str]]:
    """The loop over heads and the fused projection, on each problem that both ran."""
    layers = [row for row in run.rows if row["scope"] == "layer" and (row["heads"] or 0) > 1]
    for group in groups(layers, None):
        both = pair(group.rows, "backend", "naive", "fused")
        if both is not None and (ratio := time_ratio(*both)) is not None:
            yield both, ratio, group.at


def equal_projections(run: Measured) -> Some:
    """By the correctness check."""
    for rows, _, at in _loops(run):
        errors = [row.get("error_ratio") for row in rows]
        held = all(error <= ALLOWED_RATIO for error in errors if error is not None)
        doubt = ", not shown" if None in errors else ""
        yield exactly("naive and fused", held, f"equal at {at}", doubt)


def loop_over_fused(run: Measured) -> Some:
    """What was shown to be the same is no faster."""
    for (loop, _), ratio, at in _loops(run):
        found = of_ratio(loop, ratio, f"loop over fused at {at}")
        same = EQUAL[0] <= found.low <= 1 and found.high <= EQUAL[1]
        yield found._replace(low=1.0, high=1.0) if same else found


# ---- in proportion -------------------------------------------------------------------------------

Shares = Iterator[tuple[Contrast, float, str]]


def pruned(rows: Sequence[Row]) -> Shares:
    """Layers that differ only in their heads against the one that has most, and the share left.

    Heads whose width follows from their number do not count: pruning keeps the width of the others.
    """
    rest = [axis for axis in AXES if axis not in ("heads", "kv_heads")]
    layers = (row for row in rows if row["scope"] == "layer" and row["heads"])
    own = (row for row in layers if row["kv_heads"] == row["heads"])
    for same in by(own, lambda row: (row["backend"], *map(row.get, rest))).values():
        whole = max(same, key=lambda row: row["heads"])
        for row in (one for one in same if one["heads"] < whole["heads"]):
            left = f"{row['heads']} of {whole['heads']} heads at N = {count_text(row['seq_len'])}"
            one = Contrast(axis="heads", row=row, base=whole)
            yield one, row["heads"] / whole["heads"], left


def batches(rows: Sequence[Row]) -> Shares:
    """Batches against the smallest, and how many times as many sequences they have."""
    for group, costs in contrasts(rows, "batch"):
        for one in costs:
            larger, least = one.row["batch"], one.base["batch"]
            if larger > least:
                yield one, larger / least, f"batch {larger} over {least} at {group.at}"


def times(pairs: Callable[[Sequence[Row]], Shares], run: Measured) -> Some:
    for one, share, what in pairs(run.rows):
        if one.time is not None:
            yield of_ratio(one.row, one.time, what, share=share)


def needed(pairs: Callable[[Sequence[Row]], Shares], run: Measured) -> Some:
    for one, share, what in pairs(run.rows):
        if not isnan(one.peak_bytes):
            text = f"{what}: {number_text(one.peak_bytes)} times the bytes"
            yield exactly(one.backend, one.peak_bytes / share, text)


# ---- growth --------------------------------------------------------------------------------------


def crossing(run: Measured) -> Some:
    """The N from which N² takes most of a layer's time, over the one by FLOPs."""
    layers = [row for row in run.quadratic if row["scope"] == "layer"]
    for backend in backends(layers):
        for group, found in growths_of(layers, backend):
            counts = flops_over(group.rows)
            if counts is None or counts.quadratic <= 0 or counts.linear <= 0:
                continue  # a mask may leave no N² to be taken over by
            by_flops = float(counts.linear / counts.quadratic)
            last, power = found.lengths[-1], found.at_longest
            is_flat = last >= PAST_CROSSING * by_flops and power.high < 1.5
            over, low, high = found.crossover, nan, nan
            if over or is_flat:
                low, high = (over.low, over.high) if over else (last, inf)
            doubt = BUSY * found.disturbed
            if not found.describes:
                n, off = found.worst
                doubt = f"; the formula is off by {number_text(off)} times at N = {count_text(n)}"
            elif not is_flat and found.lengths[0] * PAST_CROSSING > by_flops:
                doubt = doubt or f"; too close to the shortest N, {found.lengths[0]}"
            text = f"N^{interval_text(power)} up to N = {count_text(last)}; N² takes over at N = "
            text += f"{interval_text(over) if over else 'none'}, by FLOPs {number_text(by_flops)}"
            yield Found(backend, low / by_flops, high / by_flops, text, doubt)


def core_share(run: Measured) -> Some:
    """Of the layer's time, at the longest N of each problem that is past the crossing."""
    longest: dict[tuple[Any, ...], Found | None] = {}
    for group in sorted(
        groups(run.quadratic, "scope"), key=lambda one: one.problem["seq_len"] or 0
    ):
        rest = tuple(value for axis, value in group.problem.items() if axis != "seq_len")
        for backend in backends(group.rows):
            mine = [row for row in group.rows if row["backend"] == backend]
            both = pair(mine, "scope", "core", "layer")
            if both is not None and (share := time_ratio(*both)) is not None:
                core, layer = (row["work_flops"] for row in both)
                is_past = core >= PAST_CROSSING * (layer - core)
                found = of_ratio(both[1], share, f"core over layer at {group.at}")
                longest[backend, *rest] = found if is_past else None
    yield from filter(None, longest.values())


def width_flops(scope: str, run: Measured) -> Some:
    """The exponent of d_model in the FLOPs, at the widest."""
    for group in groups(_over_width(scope, run), "d_model"):
        if counts := flops_over(group.rows, "d_model"):
            d = counts.solved[-1]
            power = float((counts.linear * d + 2 * counts.quadratic * d * d) / counts.at(d))
            yield exactly("FLOPs", power, f"d^{number_text(power)} at d = {d}, {group.at}")


def width_times(scope: str, run: Measured) -> Some:
    yield from powers(_over_width(scope, run), "d_model")


def _over_width(scope: str, run: Measured) -> list[Row]:
    """Of layers those at N of at most an eighth of the widest d_model: the core is small there."""
    mine = [row for row in run.quadratic if row["scope"] == scope]
    widest = max((row["d_model"] for row in mine), default=0)
    return [row for row in mine if scope == "core" or 8 * row["seq_len"] <= widest]


def recurrent(over: str, run: Measured) -> Some:
    yield from powers([row for row in run.every if family(row["backend"]) in RECURRENT], over)


def method(name: str, run: Measured) -> Some:
    """The exponent of N of a method that is not quadratic: in time, or 2 if its bytes have N²."""
    yield from powers([row for row in run.every if family(row["backend"]) == name])


def powers(rows: Sequence[Row], over: str = "seq_len") -> Some:
    """The exponent of time between the three largest N, or values of another axis."""
    symbol = axis_title(over)
    for backend in backends(rows):
        for group, found in growths_of(rows, backend, over):
            power, (first, _, last) = found.at_longest, map(count_text, found.lengths[-3:])
            at = f"{symbol} = {first} to {last}{in_brackets(group.label)}"
            text = f"{symbol}^{interval_text(power)} in time over {at}"
            memory = bytes_over_n(group.rows, backend)
            if memory is not None and memory.exact and memory.quadratic > 0:
                yield exactly(backend, 2, f"N² in bytes, {text}")
            else:
                busy = BUSY * found.disturbed
                yield Found(backend, power.low, power.high, text, busy, found.most)
