"""Every answer of a run as facts, from the values that the page's sentences and tables are made of.

A function per subject yields its facts; a fact without a value says why.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from ...harness.stats.intervals import Interval
from ..claims.ledger import claims_on, measured
from ..contrasts import Contrast, against_one_head
from ..data.decode import is_decode
from ..data.load import rows_of
from ..data.peaks import places
from ..data.read import Run
from ..data.row_groups import Row, by, distinguishing_axes, first_copies, problem
from ..data.run_meta import Meta, run_meta
from ..facts import Fact, mark_word, ratio_fact
from ..formatting import STATUS_WORDS
from ..growth_fit import growths
from ..judging.pair import time_ratio
from ..subjects import block, chunks, latent, padding, stored_keys, testing_claims
from ..subjects._choice import NOT_JUDGED, choices
from ..subjects._growth_along import SIZES, growth_along
from ..subjects._memory_over_n import families, memory_curves, other_peaks, wall_groups
from ..subjects._race import races
from ..subjects._windows import observed, windows
from ..subjects.contrasts import contrasted
from ..subjects.correctness import error_ratio, errors_by_backend
from ..subjects.crossover import challenged
from ..subjects.energy import energy_costs
from ..subjects.own import own_backends
from ..subjects.own import races as own_races
from ..subjects.trust import trust
from ..subjects.utilization import BOOKKEEPING, launch_modes
from ..subjects.wall import longest

Place = Mapping[str, Any]
LATENCIES = ("latency_ms", "wall_latency_ms", "hot_latency_ms", "graph_latency_ms")
SIZES_BYTES = (
    *("input_bytes", "peak_bytes", "predicted_peak_bytes", "workspace_bytes", "outside_bytes"),
    "needed_bytes",
)
PER_WHAT = {"calls": "calls_per_s", "energy_j": "energy_per_call_j"}
COUNTED = ("work_flops", "work_exps", "input_bytes")


class Told(NamedTuple):
    """One run: its rows, without further copies of a case, the axes that tell them apart, and cases
    that no axis does: a court's, a self-check's.
    """

    rows: Sequence[Row]
    meta: Meta
    axes: Sequence[str]
    twins: Collection[str]

    def place(self, row: Row, *without: str) -> dict[str, Any]:
        named = {axis: row[axis] for axis in self.axes if axis not in without}
        twin = {"case": row["case"]} if row["case"] in self.twins else {}
        return {"run": row["run"], "backend": row["backend"], **named, **twin}


def facts_of(runs: Sequence[Run]) -> list[Fact]:
    return [fact for run in runs for fact in _of_run(run)]


def _of_run(run: Run) -> Iterator[Fact]:
    rows, meta = first_copies(rows_of([run])), run_meta([run])
    alike = by(rows, lambda row: (row["backend"], *problem(row).values())).values()
    twins = {row["case"] for some in alike if len(some) > 1 for row in some}
    told = Told(rows, meta, distinguishing_axes(rows) if rows else (), twins)
    for answer in ANSWERS:
        yield from answer(told)
    place = {"run": str(run.meta["run"])}
    for badge in trust(rows, meta):
        yield Fact(answer="trust", place=place, quantity=badge.label, value=None, mark=badge.state)


def _number(
    answer: str,
    place: Place,
    quantity: str,
    value: float | None,
    reason: str = "",
    bounds: Sequence[float | None] = (None, None),
) -> Fact:
    return Fact(
        answer=answer,
        place=place,
        quantity=quantity,
        value=value,
        low=bounds[0],
        high=bounds[1],
        reason=reason,
    )


def _interval(answer: str, place: Place, quantity: str, found: Interval) -> Fact:
    return _number(answer, place, quantity, found.value, bounds=(found.low, found.high))


def _why(row: Row) -> str:
    """Why a case has no value."""
    if row["status"] == "ok":
        return "not measured"
    return ": ".join(filter(None, (STATUS_WORDS.get(row["status"], row["status"]), row["reason"])))


# ---- each case -----------------------------------------------------------------------------------


def _times(told: Told) -> Iterator[Fact]:
    for row in told.rows:
        place = told.place(row)
        value, *bounds = (row.get(f"latency_{of}ms") for of in ("", "low_", "high_"))
        yield _number(
            "time", place, "latency_ms", value, _why(row) if value is None else "", bounds
        )
        for name in LATENCIES[1:]:
            if row.get(name) is not None:
                yield _number("time", place, name, row[name])


def _memory(told: Told) -> Iterator[Fact]:
    for row in told.rows:
        place, missing = told.place(row), row.get("memory_missing") or {}
        for name in SIZES_BYTES:
            if (value := row.get(name)) is not None:
                yield _number("memory", place, name, value)
            elif name == "peak_bytes" or name in missing:
                yield _number("memory", place, name, None, missing.get(name) or _why(row))
        for other in other_peaks(row):
            if not other.agrees:
                yield _number(
                    "memory", place, f"{other.name}_peak_bytes", other.size_bytes, "disagrees"
                )


def _decode(told: Told) -> Iterator[Fact]:
    for row in filter(is_decode, told.rows):
        place, note = told.place(row), row.get("decode_bandwidth_note") or ""
        for start, end in (("decode_", "bytes_per_s"), ("decode_bandwidth_", "ratio")):
            value, *bounds = (row.get(f"{start}{of}{end}") for of in ("", "low_", "high_"))
            if value is not None:
                yield _number("decode", place, f"{start}{end}", value, note, bounds)


def _roofline(told: Told) -> Iterator[Fact]:
    for one in places(told.rows, told.meta):
        place = told.place(one.row)
        yield _interval("roofline", place, "achieved_flops_per_s", one.achieved_flops_per_s)
        if one.share is not None:
            yield _interval("roofline", place | {"bound": one.bound}, "attainable_ratio", one.share)


def _utilization(told: Told) -> Iterator[Fact]:
    """Also what no probe could read, with why."""
    for row in told.rows:
        for way in launch_modes([row]):
            place = told.place(row) | {"way": way}
            names = dict.fromkeys(name for window in windows(row, way) for name in window)
            for name in ("calls", *(name for name in names if name not in BOOKKEEPING)):
                if (found := observed(row, name, way)) is not None:
                    yield _interval("utilization", place, PER_WHAT.get(name, name), found)
        for name, value in (row.get("tables") or {}).items():
            if type(value) in (int, float):
                yield _number("utilization", told.place(row), name, value)
        for name, reason in (row.get("missing") or {}).items():
            yield _number("utilization", told.place(row), PER_WHAT.get(name, name), None, reason)


def _energy(told: Told) -> Iterator[Fact]:
    for _, costs in energy_costs(told.rows, told.meta):
        for one in costs:
            place = told.place(one.row)
            yield _interval("energy", place, "energy_per_token_j", one.per_token_j)
            if not one.is_baseline:
                yield ratio_fact("energy", place, one.ratio, "an energy is 0", "energy")


def _correctness(told: Told) -> Iterator[Fact]:
    for one in errors_by_backend(told.rows):
        largest = one.checked[0]
        yield _number("correctness", told.place(largest), "error_ratio", error_ratio(largest))
        place = {"run": largest["run"], "backend": one.backend}
        place |= {"python": one.python} if one.python else {}
        yield _number("correctness", place, "incorrect_count", one.wrong_count)


# ---- who is fastest, and what to take ------------------------------------------------------------


def _fastest(told: Told) -> Iterator[Fact]:
    """Every time over that of the fastest exact backend of its problem."""
    for one in races(told.rows):
        found = one.race
        for first in found.ranking[:1]:
            yield Fact(
                answer="fastest",
                place=told.place(first),
                quantity="time_ratio",
                value=1.0,
                mark=mark_word(found.mark) if found.margins else None,
                reason="" if found.margins else "the only one",
            )
            for row, margin in found.pairs:
                yield ratio_fact("fastest", told.place(row), margin)
            for row in found.inexact:
                ratio = time_ratio(row, first)
                yield ratio_fact("fastest", told.place(row) | {"exact": False}, ratio)


def _regret(told: Told) -> Iterator[Fact]:
    """The backend to take first."""
    found = choices(told.rows)
    for one in found.every if found else ():
        run = one.times[0].of.rows[0]["run"]
        place = {"run": run, "backend": one.backend}
        ratio = one.slowest.ratio
        if found is not None and not found.judged:
            yield _number("regret", place, "worst_time_ratio", None, NOT_JUDGED)
        elif ratio is None:
            yield _number("regret", place, "worst_time_ratio", 1.0)
        else:
            at = {axis: one.slowest.of.rows[0][axis] for axis in told.axes}
            yield ratio_fact("regret", place | at, ratio, of="worst_time")
        counts = {"ran": len(one.times), "unfit": one.unfit, "failed": one.failed}
        for name, count in counts.items():
            yield _number("regret", place, f"{name}_count", count)


def _own(told: Told) -> Iterator[Fact]:
    for name in own_backends(told.rows, told.meta):
        for one in own_races(name, told.rows):
            place = told.place(one.mine) | {"against": one.best}
            yield ratio_fact("own", place, one.ratio, _why(one.mine))


# ---- one axis ------------------------------------------------------------------------------------


def _wall(told: Told) -> Iterator[Fact]:
    """The longest N that ran, that did not, and that fits; also by searches."""
    for family in families(told.rows):
        for group in family.values():
            for curve in memory_curves(group, told.meta):
                place = told.place(curve.rows[0], "seq_len", "kv_seq_len")
                ends = {"longest_ran_n": curve.longest, "first_out_n": curve.first_out}
                for name, n in (ends | {"stop_n": curve.stop_n}).items():
                    if n is not None:
                        yield _number("wall", place, name, n)
                if curve.twice is not None:
                    yield _number("wall", place, "bytes_ratio_of_twice_n", curve.twice)
    for group in wall_groups(told.meta):
        for row in group.rows:
            end, place = longest(row), {"run": row["run"], "backend": row["backend"]}
            reason = end.how if end.n is not None else _why(row)
            yield _number("wall", place | {"search": group.label}, "longest_n", end.n, reason)


def _compared(answer: str, told: Told, one: Contrast) -> Iterator[Fact]:
    sides = {"setting": one.row[one.axis], "base": one.base[one.axis]}
    place = told.place(one.row) | {"axis": one.axis} | sides
    if not one.of_heads:
        for of in ("time", "peak_bytes"):
            yield ratio_fact(answer, place, None, one.kernels, of=of)
    else:
        yield ratio_fact(answer, place, one.time, one.missing)
    if one.throughput is not None:
        yield ratio_fact(answer, place, one.throughput, of="tokens_per_s")
    for name, value in (
        *([("peak_bytes", one.peak_bytes)] if one.of_heads else []),
        *((column, one.counted(column)) for column in COUNTED),
    ):
        if isfinite(value):
            yield _number(answer, place, f"{name}_ratio", value)


def _heads(told: Told) -> Iterator[Fact]:
    for _, some in against_one_head(told.rows):
        for one in some:
            yield from _compared("heads", told, one)


def _contrasts(told: Told) -> Iterator[Fact]:
    for found in contrasted(told.rows, told.meta):
        for _, some in found.problems:
            for one in some:
                yield from _compared("contrasts", told, one)


def _stored(told: Told) -> Iterator[Fact]:
    """Padding, ways of storing keys and values, latent attention, chunks, parts of a block."""
    for one in (one for _, batches in padding.comparisons(told.rows) for one in batches):
        place = told.place(one.row) | {"packed": one.base["backend"]}
        yield _number("padding", place, "padding_ratio", padding.share(one))
        yield ratio_fact("padding", place, one.time)
        yield _number("padding", place, "peak_bytes_ratio", one.ratio("peak_bytes"))
    for one in stored_keys.comparisons(told.rows):
        place = told.place(one.row) | {"plain": one.base["backend"]}
        yield ratio_fact("stored_keys", place, one.time)
        yield _number("stored_keys", place, "input_bytes_ratio", one.ratio("input_bytes"))
    for one in (one for some in latent.comparisons(told.rows) for one in some):
        yield ratio_fact("latent", told.place(one.row), one.time)
        yield _number("latent", told.place(one.row), "work_flops_ratio", latent.flops_ratio(one))
    for one in chunks.prefills(told.rows):
        place = told.place(one.base) | {"chunk": one.row["seq_len"]}
        yield ratio_fact("chunks", place, one.time)
        yield _number("chunks", place, "peak_bytes", one.row["peak_bytes"])
    for _, every in block.shares(told.rows):
        for one in (one for some in every for one in some):
            yield ratio_fact("block", told.place(one.base), one.time, of="attention_time")


def _crossovers(told: Told) -> Iterator[Fact]:
    """From which N on a sparse, approximate or recurrent backend is faster than a dense one."""
    for group, every in challenged(told.rows):
        for one in every:
            mine = group.of_backend(one.backend)[0]
            for other, found in one.crossovers.items():
                place = told.place(mine, "seq_len", "kv_seq_len") | {"against": other}
                reason = "" if found.start is not None else "at no N up to the longest"
                yield _number("crossovers", place, "faster_from_n", found.start, reason)


def _growth(told: Told) -> Iterator[Fact]:
    """Exponents and fits of time over N, and the exponents that other sizes amount to."""
    for group, every in growths(told.rows):
        for one in every:
            place = told.place(group.of_backend(one.backend)[0], "seq_len", "kv_seq_len")
            for n, exponent in zip(one.lengths, one.exponents, strict=True):
                if exponent is not None:
                    yield _interval("growth", place | {"at_n": n}, "exponent", exponent)
            if one.reason:
                yield _number("growth", place, "constant_ms", None, one.reason)
                continue
            for name in ("constant_ms", "per_token_ms", "per_pair_ms"):
                yield _interval("growth", place, name, getattr(one, name))
            if one.crossover is not None:
                yield _interval("growth", place, "quadratic_from_n", one.crossover)
            yield _number(
                "growth", place, "worst_ratio", one.worst[1], "" if one.describes else "not fitted"
            )
    for axis in SIZES[1:]:
        for group, some in growth_along(told.rows, axis):
            for along in some:
                row = next(row for row in group.rows if row["backend"] == along.backend)
                place = told.place(row, axis) | {"axis": axis}
                place |= {"from": along.first, "to": along.last}
                yield ratio_fact("growth", place, along.time)
                yield _interval("growth", place, "exponent", along.exponent)
                if isfinite(along.bytes_exponent):
                    yield _number("growth", place, "peak_bytes_exponent", along.bytes_exponent)


def _claims(told: Told) -> Iterator[Fact]:
    """Verdicts: all of a run that was made to test claims, else those that its studies allow."""
    testing = testing_claims(told.meta)
    asked = testing or any(run.get("studies") for run in told.meta.values())
    for runs in measured(told.rows, told.meta).values() if asked else ():
        for one in claims_on(runs):
            if testing or one.verdict != "not run":
                yield Fact(
                    answer="claims",
                    place={"run": next(iter(told.meta)), "claim": one.name},
                    quantity="; ".join(part.name for part in one.quantities),
                    value=None,
                    mark=one.verdict,
                    reason=one.lacking,
                )


ANSWERS: tuple[Callable[[Told], Iterator[Fact]], ...] = (
    *(_times, _fastest, _regret, _own, _wall, _memory, _heads, _contrasts, _stored, _crossovers),
    *(_growth, _decode, _roofline, _utilization, _energy, _correctness, _claims),
)
