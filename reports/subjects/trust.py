"""Can I trust it: are results right, were times undisturbed and repeated, is the run complete?

A line each, and all checks behind it. What was not observed is unknown, never good.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from math import expm1, log
from statistics import median
from typing import Literal, NamedTuple

from ...harness.rows.record import FAILURES
from ..data.exactness import is_exact
from ..data.noise_floor import DISTURBED_RATIO, share_text
from ..data.peaks import places
from ..data.processor_time import disturbed, in_most
from ..data.row_groups import Row, distinguishing_axes, is_timed, label, problem
from ..data.run_meta import UNFINISHED, Meta, cpu_threads, finite_number, ours, plan_of
from ..elements import Badge, Text, caution
from ..formatting import (
    STATUS_WORDS,
    beyond_whole,
    list_text,
    number_text,
    paragraph,
    plural,
    rough_percent_text,
)
from ..judging.pair import of_one_process
from . import Subject
from ._doubts import ON_GPU, Amiss, held_back, power_only, was_warming
from .correctness import WRONG

TITLE = "All checks"
SECTION = "trust"
ORDER = 0
MOST_NAMED = 4
# Of the median clock: latency follows the clock, and 5 % is the resolution of a quick run.
CLOCK_SPREAD_RATIO = 0.05
FEW_RATIO = 0.05  # of all blocks: a few of them move no median
AGAIN = ": measure again"
ONE_THREAD = (
    ", with --threads 1 if the machine stays busy: several threads wait for the slowest of them"
)
LIMITED = ", as in all long work: times are those of this clock"
SOURCES = {
    "selfcheck": "as attnbench doctor --deep found",
    "rows": "as the rows of several processes show",
    "assumed": "which is assumed",
}
MEASURE_IT = "attnbench doctor --deep measures it."
OF_AN_H200 = "On a GPU it is that of six processes on an H200."
BUSY = (
    "Where other work disturbed one of two cases their ratio allows for"
    f" {rough_percent_text(DISTURBED_RATIO)}."
)
DRIFTED = "call times still drifted when the warm-up ended"
CONTENDED = "other work competed for the same cores"
INTERPRETED = (
    "Triton kernels ran in Python's interpreter (TRITON_INTERPRET=1): results can be checked, but"
    " times say nothing about the kernels"
)
State = Literal["good", "caution", "unknown"]


class Check(NamedTuple):
    """A sentence, and what else is to be said of it."""

    state: State
    text: str
    more: str = ""


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """A line for each item and each check that is amiss."""
    blocks: list[Text] = []
    for item, found in checks(ours(rows, meta), meta).items():
        texts = [(one.state, paragraph(one.text, one.more)) for one in found.values()]
        fine = paragraph(*(text for state, text in texts if state != "caution"))
        blocks += [caution(f"{item}: {text}") for state, text in texts if state == "caution"]
        blocks += [Text(text=f"{item}: {fine}")] if fine else []
    return Subject(blocks=tuple(blocks), lacking="No case was measured here.")


def trust(rows: Sequence[Row], meta: Meta) -> list[Badge]:
    """Four sentences: right, undisturbed, repeated, complete. None without cases of ours."""
    return [_badge(item, found) for item, found in checks(ours(rows, meta), meta).items()]


def _badge(item: str, found: dict[str, Check]) -> Badge:
    """The first check that is amiss, else that is fine; the names of others that are amiss or not
    known.
    """
    states = {name: one.state for name, one in found.items()}
    order: tuple[State, ...] = ("caution", "good", "unknown")
    state = next(one for one in order if one in states.values())
    first = next(name for name in found if states[name] == state)
    amiss, what = ("caution", "Also") if state == "caution" else ("unknown", "Not known")
    others = [name for name in found if states[name] == amiss and name != first]
    rest = f"{what}: {list_text(others)}." if others else ""
    return Badge(label=item, state=state, text=paragraph(found[first].text, rest))


def checks(rows: Sequence[Row], meta: Meta) -> dict[str, dict[str, Check]]:
    """Of each item, by name, those that say something here; empty without cases."""
    timed = [*filter(is_timed, rows)]
    on_gpu = [row for row in timed if row.get("device") == "cuda"]
    many = any((cpu_threads(meta[row["run"]]) or 1) > 1 for row in timed)
    again, slower = f"{AGAIN}{ONE_THREAD if many else ''}", LIMITED if power_only(timed) else AGAIN
    interpreted = partial(_is_interpreted, meta)
    found: dict[str, dict[str, Check | None]] = {
        "Right": {
            "correctness": _correctness(rows, timed),
            "peak": _peak(timed, meta),
            "interpreter": _cases(
                timed if any(map(interpreted, timed)) else (), interpreted, INTERPRETED
            ),
        },
        "Undisturbed": {
            "throttling": _blocks(timed, "throttled_blocks", held_back(timed), slower),
            "contention": _blocks(timed, "contended_blocks", CONTENDED, again),
            "clocks": _clocks(on_gpu) if on_gpu else None,
            **{name: _cases(on_gpu, *doubt) for name, doubt in ON_GPU.items()},
        },
        "Repeated": {
            "repeats": _processes(timed),
            "warm-up": _cases(timed, was_warming, DRIFTED),
            "precision": _precision(timed, meta) if timed else None,
        },
        "Complete": {"cases": _complete(rows)},
    }
    known = {item: {name: one for name, one in of.items() if one} for item, of in found.items()}
    return known if rows else {}


def _complete(rows: Sequence[Row]) -> Check:
    counts = Counter(row["status"] for row in rows)
    texts = [f"{count} {STATUS_WORDS[status]}" for status, count in counts.most_common()]
    state: State = "caution" if {*UNFINISHED, *FAILURES} & {*counts} else "good"
    return Check(state, f"{plural(len(rows), 'case')}: {'; '.join(texts)}.")


# ---- of cases and of blocks ----------------------------------------------------------------------


def _cases(timed: Sequence[Row], amiss: Amiss, what: str, so: str = "") -> Check | None:
    """In how many of these cases `what` is so, and what follows; None without any case."""
    found = [amiss(row) for row in timed]
    if some := [row for row, is_so in zip(timed, found, strict=True) if is_so]:
        more = paragraph(so, _which(some, timed))
        return Check("caution", f"In {_of(len(some), timed)} {what}.", more)
    if silent := found.count(None):
        return Check("unknown", f"In {_of(silent, timed)} it is not known whether {what}.")
    return (
        Check("good", f"In none of {plural(len(timed), 'timed case')} {what}.") if timed else None
    )


def _blocks(timed: Sequence[Row], field: str, what: str, again: str) -> Check:
    """Such blocks are kept. `again`: what to do if they are most of a case's."""
    known = [row for row in timed if row.get(field) is not None and row.get("blocks")]
    if not known:
        return Check("unknown", f"It is not known whether {what}.")
    some, blocks = (sum(row[name] for row in known) for name in (field, "blocks"))
    mostly = [row for row in timed if in_most(row.get(field), row.get("blocks"))]
    most = (
        f"In {_of(len(mostly), timed)} it was more than half of the blocks{again}."
        if mostly
        else ""
    )
    silent = len(timed) - len(known)
    rest = f"{plural(silent, 'case')} of {len(timed)} do not say." if silent else ""
    caution = mostly or some > FEW_RATIO * blocks
    return Check(
        "caution" if caution else "unknown" if silent else "good",
        f"In {some or 'none'} of {plural(blocks, 'block')} {what}.",
        paragraph(most, _which(mostly, timed), rest),
    )


def _of(some: int, timed: Sequence[Row]) -> str:
    """`2 of 30 timed cases`, `all 30 timed cases`."""
    return f"{'all' if some == len(timed) > 1 else f'{some} of'} {plural(len(timed), 'timed case')}"


def _which(some: Sequence[Row], timed: Sequence[Row], what: str = "Cases") -> str:
    """Each case by its backend and the axes that vary; "" of none and of all."""
    if not some or len(some) == len(timed) > 1:
        return ""
    axes = distinguishing_axes(timed)
    texts = [f"{row['backend']} at {label(problem(row), axes)}" for row in some]
    return f"{what}: {list_text(texts, MOST_NAMED)}."


# ---- one check each ------------------------------------------------------------------------------


def _correctness(rows: Sequence[Row], timed: Sequence[Row]) -> Check:
    if wrong := sum(row["status"] == WRONG for row in rows):
        return Check("caution", f"{plural(wrong, 'case')} gave a wrong result and got no latency.")
    exact = [*filter(is_exact, timed)]
    if not exact:
        what = "No timed case is exact attention." if timed else "No case was timed."
        return Check("unknown", what)
    if unchecked := [row for row in exact if row.get("error_ratio") is None]:
        return Check("unknown", f"{_of(len(unchecked), timed)} have no error on record.")
    exempt = [row for row in timed if not is_exact(row)]
    rest = f"; {_of(len(exempt), timed)} claim no exact result" if exempt else ""
    of = "exact case" if exempt else "case"
    return Check("good", f"Every timed {of} was first checked against a float64 reference{rest}.")


def _peak(timed: Sequence[Row], meta: Meta) -> Check | None:
    """More FLOP/s than calibration measured: rows of earlier versions, or peaks that were too low.

    A run refutes what is beyond the device's limits itself, but those are generous.
    """
    shares = {
        id(one.row): one.achieved_flops_per_s.value / one.peaks.flops_per_s
        for one in places(timed, meta)
        if one.peaks
    }
    runs = (meta[row["run"]].get("calibration") or {} for row in timed)
    clocks = [mhz for one in runs for mhz in (one.get("clocks_mhz") or {}).values()]
    at = f" at {min(clocks):.0f} MHz" if clocks else ""
    return _cases(
        [row for row in timed if id(row) in shares],
        lambda row: beyond_whole(shares[id(row)]),
        f"more FLOP/s were achieved than by calibration's best matrix product{at}",
        "That is no peak of this device. It was busy, its clock was lower, or the work was not"
        " done; calibrate again.",
    )


def _is_interpreted(meta: Meta, row: Row) -> bool:
    """attnbench's own kernels refuse it."""
    facts = meta[row["run"]].get("environment") or {}
    return bool((facts.get("allocator") or {}).get("TRITON_INTERPRET") == "1")


def _clocks(timed: Sequence[Row]) -> Check:
    blocks = (block for row in timed for one in row.get("conditions") or [] for block in one)
    clocks = [block["sm_clock_mhz"] for block in blocks if "sm_clock_mhz" in block]
    if not clocks:
        return Check("unknown", "No block has a reading of the clock.")
    low, high = min(clocks), max(clocks)
    steady = high - low <= CLOCK_SPREAD_RATIO * median(clocks)
    text = f"The clock was {low:.0f} to {high:.0f} MHz over all blocks."
    return Check("good" if steady else "caution", text)


def _processes(timed: Sequence[Row]) -> Check:
    """And what ratios of cases of one process allow for, which their rows cannot show."""
    counts = [row["processes"] for row in timed if row.get("processes") is not None]
    if not counts:
        return Check("unknown", "The number of processes per case is not known.")
    if min(counts) > 1:
        return Check("good", f"At least {min(counts)} processes measured each case.")
    single = [row for row in timed if of_one_process(row)]
    known = {(row["process_noise_ratio"], row["process_noise_source"]) for row in single}
    noise = sorted((ratio, str(of)) for ratio, of in known if ratio is not None)
    how = [f"ratios allow for {share_text(*one)}, {SOURCES.get(one[1], one[1])}" for one in noise]
    is_assumed = "assumed" in [of for _, of in noise]
    more = {
        MEASURE_IT: is_assumed,
        OF_AN_H200: is_assumed and any(row.get("device") == "cuda" for row in single),
        BUSY: any(ratio < DISTURBED_RATIO for ratio, _ in noise) and disturbed(*single),
    }
    return Check(
        "caution",
        f"One process per case: {'; '.join(how) or 'no interval includes run-to-run variation'}.",
        paragraph(*(text for text, is_so in more.items() if is_so)),
    )


def _precision(timed: Sequence[Row], meta: Meta) -> Check:
    """How precise latencies are. What a plan had no time for is no fault of the run."""
    if not all(row.get("stop") for row in timed):
        return Check("unknown", "The rows do not say why measuring ended.")
    known = [row for row in timed if row.get("latency_low_ms") and row.get("latency_high_ms")]
    if not known:
        return Check("unknown", "No latency has an interval.")
    goals = {finite_number(plan_of(run), "precision_ratio") for run in meta.values()}
    wanted = " and ".join(f"± {100 * ratio:g} %" for ratio in sorted(filter(None, goals)))
    widest = max(known, key=_width_percent)
    middle, most = map(number_text, (median(map(_width_percent, known)), _width_percent(widest)))
    return Check(
        "good",
        f"Latencies are known to ± {middle} % in the middle, ± {most} % at most.",
        paragraph(
            _which([widest], timed, "The widest"), f"{wanted} was requested." if wanted else ""
        ),
    )


def _width_percent(row: Row) -> float:
    """Half the width of the latency's interval, on the log scale."""
    return 100 * expm1(log(row["latency_high_ms"] / row["latency_low_ms"]) / 2)
