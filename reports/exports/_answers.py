"""Every answer of a run as facts, from the values that the page's sentences and tables are made of.

A function per answer yields its facts; a fact without a value says why.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from ..claims.claim import outcomes
from ..claims.ledger import CLAIMS
from ..contrasts import Contrast, against_one_head
from ..data.load import rows_of
from ..data.peaks import is_decode, places
from ..data.row_groups import Row, by, distinguishing_axes, first_copies, problem
from ..data.run_meta import Meta, Run, run_meta
from ..facts import Fact, fact_of, mark_word
from ..formatting import STATUS_WORDS
from ..growth_fit import growths
from ..judging.pair import time_ratio
from ..quantity import Quantity
from ..subjects import block, chunks, latent, padding, stored_keys, testing_claims
from ..subjects._choice import choices
from ..subjects._memory_over_n import families, memory_curves, other_peaks, wall_groups
from ..subjects._over import LATENCY, ends
from ..subjects._race import NOT_JUDGED, races
from ..subjects._readings import launch_modes, observed, windows
from ..subjects.contrasts import contrasted
from ..subjects.correctness import error_ratio, errors_by_backend
from ..subjects.crossover import challenged
from ..subjects.decode import RATE
from ..subjects.energy import energy_costs
from ..subjects.growth import SIZES, growth_along
from ..subjects.own import own_backends
from ..subjects.own import races as own_races
from ..subjects.trust import trust
from ..subjects.utilization import BOOKKEEPING
from ..subjects.wall import longest

Found = Iterator[tuple[Any, ...]]
"""Of facts of one answer: place, quantity, a number, an interval or a ratio, and more: see fact_of.
"""
OTHER_LATENCIES = ("wall_latency_ms", "hot_latency_ms", "graph_latency_ms")
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
    for answer, facts in ANSWERS.items():
        for one in facts(told):
            yield one if isinstance(one, Fact) else fact_of(answer, *one)
    place = {"run": str(run.meta["run"])}
    for badge in trust(rows, meta):
        yield Fact(answer="trust", place=place, quantity=badge.label, value=None, mark=badge.state)


def _column(row: Row, column: str) -> Quantity | None:
    """A value with its bounds; `column` has braces where their names have `low_`."""
    value, low, high = ends(row, column)
    return None if value is None else Quantity(value, low=low, high=high)


def _why(row: Row) -> str:
    """Why a case has no value."""
    if row["status"] == "ok":
        return "not measured"
    return ": ".join(filter(None, (STATUS_WORDS.get(row["status"], row["status"]), row["reason"])))


# ---- each case -----------------------------------------------------------------------------------


def _times(told: Told) -> Found:
    for row in told.rows:
        place, latency_ms = told.place(row), _column(row, LATENCY)
        yield place, "latency_ms", latency_ms, _why(row) if latency_ms is None else ""
        for name in OTHER_LATENCIES:
            if row.get(name) is not None:
                yield place, name, row[name]


def _memory(told: Told) -> Found:
    for row in told.rows:
        place, missing = told.place(row), row.get("memory_missing") or {}
        for name in SIZES_BYTES:
            if (value := row.get(name)) is not None:
                yield place, name, value
            elif name == "peak_bytes" or name in missing:
                yield place, name, None, missing.get(name) or _why(row)
        for other in other_peaks(row):
            if not other.agrees:
                yield place, f"{other.name}_peak_bytes", other.size_bytes, "disagrees"


def _decode(told: Told) -> Found:
    for row in filter(is_decode, told.rows):
        note = row.get("decode_bandwidth_note") or ""
        for column in (RATE, "decode_bandwidth_{}ratio"):
            if (found := _column(row, column)) is not None:
                yield told.place(row), column.format(""), found, note


def _roofline(told: Told) -> Found:
    for one in places(told.rows, told.meta):
        place = told.place(one.row)
        yield place, "achieved_flops_per_s", one.achieved_flops_per_s
        if one.share is not None:
            yield place | {"bound": one.bound}, "attainable_ratio", one.share


def _utilization(told: Told) -> Found:
    """Also what no probe could read, with why."""
    for row in told.rows:
        for way in launch_modes([row]):
            place = told.place(row) | {"way": way}
            names = dict.fromkeys(name for window in windows(row, way) for name in window)
            for name in ("calls", *(name for name in names if name not in BOOKKEEPING)):
                if (found := observed(row, name, way)) is not None:
                    yield place, PER_WHAT.get(name, name), found
        for name, value in (row.get("tables") or {}).items():
            if type(value) in (int, float):
                yield told.place(row), name, value
        for name, reason in (row.get("missing") or {}).items():
            yield told.place(row), PER_WHAT.get(name, name), None, reason


def _energy(told: Told) -> Found:
    for _, costs in energy_costs(told.rows, told.meta):
        for one in costs:
            place = told.place(one.row)
            yield place, "energy_per_token_j", one.per_token_j
            if not one.is_baseline:
                yield place, "energy_ratio", one.ratio, "an energy is 0"


def _correctness(told: Told) -> Found:
    for one in errors_by_backend(told.rows):
        largest = one.checked[0]
        yield told.place(largest), "error_ratio", error_ratio(largest)
        place = {"run": largest["run"], "backend": one.backend}
        place |= {"python": one.python} if one.python else {}
        yield place, "incorrect_count", one.wrong_count


# ---- who is fastest, and what to take ------------------------------------------------------------


def _fastest(told: Told) -> Found:
    """Every time over that of the fastest exact backend of its problem."""
    for found in (one.race for one in races(told.rows)):
        for first in found.ranking[:1]:
            reason = "" if found.margins else "the only one"
            mark = mark_word(found.mark) if found.margins else None
            yield told.place(first), "time_ratio", 1.0, reason, mark
            for row, margin in found.pairs:
                yield told.place(row), "time_ratio", margin
            for row in found.inexact:
                yield told.place(row) | {"exact": False}, "time_ratio", time_ratio(row, first)


def _regret(told: Told) -> Found:
    """The backend to take first."""
    found = choices(told.rows)
    for one in found.every if found else ():
        place = {"run": one.times[0].of.rows[0]["run"], "backend": one.backend}
        ratio = one.slowest.ratio
        if found is not None and not found.judged:
            yield place, "worst_time_ratio", None, NOT_JUDGED
        elif ratio is None:
            yield place, "worst_time_ratio", 1.0
        else:
            at = {axis: one.slowest.of.rows[0][axis] for axis in told.axes}
            yield place | at, "worst_time_ratio", ratio
        counts = {"ran": len(one.times), "unfit": one.unfit, "failed": one.failed}
        for name, count in counts.items():
            yield place, f"{name}_count", count


def _own(told: Told) -> Found:
    for name in own_backends(told.rows, told.meta):
        for one in own_races(name, told.rows):
            place = told.place(one.mine) | {"against": one.best}
            yield place, "time_ratio", one.ratio, _why(one.mine)


# ---- one axis ------------------------------------------------------------------------------------


def _wall(told: Told) -> Found:
    """The longest N that ran, that did not, and that fits; also by searches."""
    for group in (group for family in families(told.rows) for group in family.values()):
        for curve in memory_curves(group, told.meta):
            place = told.place(curve.rows[0], "seq_len", "kv_seq_len")
            lengths = {"longest_ran_n": curve.longest, "first_out_n": curve.first_out}
            for name, n in (lengths | {"stop_n": curve.stop_n}).items():
                if n is not None:
                    yield place, name, n
            if curve.twice is not None:
                yield place, "bytes_ratio_of_twice_n", curve.twice
    for group in wall_groups(told.meta):
        for row in group.rows:
            end, place = longest(row), {"run": row["run"], "backend": row["backend"]}
            reason = end.how if end.n is not None else _why(row)
            yield place | {"search": group.label}, "longest_n", end.n, reason


def _compared(told: Told, some: Iterable[Contrast]) -> Found:
    for one in some:
        sides = {"setting": one.row[one.axis], "base": one.base[one.axis]}
        place = told.place(one.row) | {"axis": one.axis} | sides
        yield (
            place,
            "time_ratio",
            *((one.time, one.missing) if one.of_heads else (None, one.kernels)),
        )
        if not one.of_heads:
            yield place, "peak_bytes_ratio", None, one.kernels
        if one.throughput is not None:
            yield place, "tokens_per_s_ratio", one.throughput
        counts = {"peak_bytes": one.peak_bytes} if one.of_heads else {}
        for name, value in (counts | {column: one.counted(column) for column in COUNTED}).items():
            if isfinite(value):
                yield place, f"{name}_ratio", value


def _heads(told: Told) -> Found:
    return _compared(told, (one for _, some in against_one_head(told.rows) for one in some))


def _contrasts(told: Told) -> Found:
    every = (some for of in contrasted(told.rows, told.meta) for _, some in of.problems)
    return _compared(told, (one for some in every for one in some))


def _padding(told: Told) -> Found:
    for one in (one for _, batches in padding.comparisons(told.rows) for one in batches):
        place = told.place(one.row) | {"packed": one.base["backend"]}
        yield place, "padding_ratio", padding.share(one)
        yield place, "time_ratio", one.time
        yield place, "peak_bytes_ratio", one.ratio("peak_bytes")


def _stored_keys(told: Told) -> Found:
    for one in stored_keys.comparisons(told.rows):
        place = told.place(one.row) | {"plain": one.base["backend"]}
        yield place, "time_ratio", one.time
        yield place, "input_bytes_ratio", one.ratio("input_bytes")


def _latent(told: Told) -> Found:
    for one in (one for some in latent.comparisons(told.rows) for one in some):
        yield told.place(one.row), "time_ratio", one.time
        yield told.place(one.row), "work_flops_ratio", latent.flops_ratio(one)


def _chunks(told: Told) -> Found:
    for one in chunks.prefills(told.rows):
        place = told.place(one.base) | {"chunk": one.row["seq_len"]}
        yield place, "time_ratio", one.time
        yield place, "peak_bytes", one.row["peak_bytes"]


def _block(told: Told) -> Found:
    for one in (one for _, every in block.shares(told.rows) for some in every for one in some):
        yield told.place(one.base), "attention_time_ratio", one.time


def _crossovers(told: Told) -> Found:
    """From which N on a sparse, approximate or recurrent backend is faster than a dense one."""
    for group, every in challenged(told.rows):
        for one in every:
            mine = group.of_backend(one.backend)[0]
            for other, found in one.crossovers.items():
                place = told.place(mine, "seq_len", "kv_seq_len") | {"against": other}
                reason = "" if found.start is not None else "at no N up to the longest"
                yield place, "faster_from_n", found.start, reason


def _growth(told: Told) -> Found:
    """Exponents and fits of time over N, and the exponents that other sizes amount to."""
    for group, every in growths(told.rows):
        for one in every:
            place = told.place(group.of_backend(one.backend)[0], "seq_len", "kv_seq_len")
            for n, exponent in zip(one.lengths, one.exponents, strict=True):
                if exponent is not None:
                    yield place | {"at_n": n}, "exponent", exponent
            if one.reason:
                yield place, "constant_ms", None, one.reason
                continue
            for name in ("constant_ms", "per_token_ms", "per_pair_ms"):
                yield place, name, getattr(one, name)
            if one.crossover is not None:
                yield place, "quadratic_from_n", one.crossover
            yield place, "worst_ratio", one.worst[1], "" if one.describes else "not fitted"
    for axis in SIZES[1:]:
        for group, some in growth_along(told.rows, axis):
            for along in some:
                row = next(row for row in group.rows if row["backend"] == along.backend)
                place = told.place(row, axis) | {"axis": axis}
                place |= {"from": along.first, "to": along.last}
                yield place, "time_ratio", along.time
                yield place, "exponent", along.exponent
                if isfinite(along.bytes_exponent):
                    yield place, "peak_bytes_exponent", along.bytes_exponent


def _claims(told: Told) -> Iterator[Fact]:
    """Verdicts, of runs that were made to test claims or asked for a study."""
    asked = testing_claims(told.meta) or any(run.get("studies") for run in told.meta.values())
    for one in outcomes(CLAIMS, told.rows) if asked else ():
        yield Fact(
            answer="claims",
            place={"run": next(iter(told.meta)), "claim": one.claim.name},
            quantity=one.claim.criterion.quantity,
            value=None,
            mark=one.verdict,
        )


ANSWERS: Mapping[str, Callable[[Told], Iterator[Fact] | Found]] = {
    "time": _times,
    "fastest": _fastest,
    "regret": _regret,
    "own": _own,
    "wall": _wall,
    "memory": _memory,
    "heads": _heads,
    "contrasts": _contrasts,
    "padding": _padding,
    "stored_keys": _stored_keys,
    "latent": _latent,
    "chunks": _chunks,
    "block": _block,
    "crossovers": _crossovers,
    "growth": _growth,
    "decode": _decode,
    "roofline": _roofline,
    "utilization": _utilization,
    "energy": _energy,
    "correctness": _correctness,
    "claims": _claims,
}
