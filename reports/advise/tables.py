"""Advice in tables, and as JSON (docs/format.md describes it)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from ...harness.files.printable import spaced
from ...harness.stats.intervals import Interval
from ..advise import words
from ..data.row_groups import by
from ..elements import Block, Marked, Table, Text, table_of
from ..facts import mark_word
from ..formatting import Number, bytes_text, in_brackets, measured_bounds_text, size_text, time_text
from ..quantity import Cell, Quantity
from ..words import SEEN, TIMES
from .answer import Advice
from .choices import Choice, Decision, LayerTime
from .memory import Longest, Need
from .words import LIMITS, beside_tables, named, place

NOT_KNOWN, CACHE = "not known", "keys and values"
LONGEST = ("implementation", "phase", "tokens", "limit", "attention's bytes")
Of = tuple[Decision, Choice]
Columns = Mapping[str, Callable[[Of], Cell | Marked]]


def blocks(advice: Advice) -> Iterator[Block]:
    """What stands below the headline, in a terminal and on a page."""
    for decision in advice.decisions:
        if not all(one.missing for one in decision.choices):
            some = [(decision, one) for one in decision.choices]
            title = f"Attention in all layers, {named(decision)}"
            yield table_of(title, some, CHOICE, optional=("reads",))
    if advice.longest and (advice.inquiry.left_bytes or 0) >= 0:
        yield longest_table(advice)
    if advice.needs:
        yield _memory(advice)
    yield from (Text(text=sentence) for sentence in beside_tables(advice))


def question(of: Decision | Need) -> str:
    """`prefill 8 192`."""
    return f"{of.phase} {spaced(of.context)}"


def _time(of: Of) -> Marked:
    """`5.13 s (4.90 to 5.31)`, in one unit."""
    found = of[1].total_ms
    if found is None:
        return Marked(cell=of[1].why_not, failed=not of[1].missing)
    text = time_text(found.value)
    scale = float(text.partition(" ")[0]) / found.value
    bounds = measured_bounds_text(scale * found.low, scale * found.high)
    return Marked(cell=Number(text + in_brackets(bounds)))


def _ratio(of: Of) -> Cell:
    against = of[1].against
    if against is None:
        return "" if of[1].total_ms is None else "1"
    return Quantity(against.value, "ratio", against.low, against.high)


def verdict(of: Of) -> str:
    decision, one = of
    if one.against is None:
        best = "fastest seen" if decision.close else "fastest"
        return "" if one.total_ms is None else best
    # one that is seen to be faster than the fastest is so in part of the layers
    said = SEEN.words if one.against.word == "less" else one.against.said
    return TIMES.get(said, said)


def _kernels(of: Of) -> str:
    seen = dict.fromkeys(cell.kernel for cell in of[1].cells if cell.kernel)
    return ", ".join(seen) or ("not seen" if of[1].total_ms else "")


def _rates(of: Of) -> str:
    """Of each kind of layer in decode: `9.8 GB/s (9.4 to 10.2), 61 % of the bandwidth`."""
    said: dict[str, None] = {}
    for rate in (cell.rate for cell in of[1].cells):
        if rate is not None and rate.rate_text:
            share = f", {rate.share_text} of the bandwidth" if rate.share_text else ""
            said[rate.rate_text + share] = None
    return "; ".join(said)


CHOICE: Columns = {
    "attn_implementation": lambda of: Marked(
        cell=of[1].implementation.name, strong=of[1] is of[0].chosen
    ),
    "time": _time,
    "ratio": _ratio,
    "verdict": verdict,
    "kernel": _kernels,
    "peak memory": lambda of: bytes_text(of[1].peak_bytes),
    "reads": _rates,
}


def _memory(advice: Advice) -> Table:
    """Bytes at the contexts that were asked."""
    budget = advice.inquiry.memory_bytes
    pairs = [(size_text(one.cache_bytes), size_text(one.paged_cache_bytes)) for one in advice.needs]
    windowed = any(kept != paged for kept, paged in pairs)

    def fits(of: Need) -> str:
        total = of.total_bytes
        return "" if budget is None or total is None else "yes" if total <= budget else "no"

    def size(size_bytes: int | None, *, there: bool = True) -> str:
        return (size_text(size_bytes) or NOT_KNOWN) if there else ""

    return table_of(
        f"Memory{place(advice, 'of')}",
        advice.needs,
        {
            "question": question,
            "weights": lambda of: size(of.weight_bytes),
            CACHE: lambda of: size(of.cache_bytes, there=of.phase != "training"),
            "states": lambda of: size(of.state_bytes, there=of.state_bytes != 0),
            "paged": lambda of: size(
                of.paged_cache_bytes, there=windowed and of.phase != "training"
            ),
            "kept for backward": lambda of: size(of.kept_bytes, there=of.phase == "training"),
            "attention of one layer": lambda of: size(of.attention_bytes),
            "by": lambda of: ", ".join(filter(None, (of.implementation, of.source))),
            "in all": lambda of: size(of.total_bytes),
            "fits": fits,
        },
        optional=(CACHE, "states", "paged", "kept for backward"),
    )


def longest_table(advice: Advice, *, sources: bool = True) -> Table:
    """The longest context of each implementation; phases of which the same is said in one row.
    `sources`: with where its bytes are from.
    """

    def tokens(one: Longest) -> Cell:
        least = "≥\u00a0" if one.at_least else ""
        return NOT_KNOWN if one.context is None else Number(f"{least}{spaced(one.context)}")

    def said(one: Longest) -> Sequence[Cell]:
        limit = "" if one.context is None else LIMITS[one.limit]
        return (tokens(one), limit, one.source)[: 2 + sources]

    ordered = sorted(advice.longest, key=lambda one: one.context is None)
    rows = by(ordered, lambda one: (one.attn_implementation, *said(one)))
    return Table(
        title=f"Longest context{place(advice, 'in')}",
        columns=LONGEST[: 4 + sources],
        rows=tuple(
            (name, ", ".join(one.phase for one in some), *cells)
            for (name, *cells), some in rows.items()
        ),
    )


# ---- as JSON -------------------------------------------------------------------------------------


SCHEMA = 1


def document(advice: Advice) -> dict[str, Any]:
    """What is not known is null."""
    asked = advice.inquiry
    missing = [(of, one) for of in advice.decisions for one in of.missing]
    return {
        "schema": SCHEMA,
        "answer": words.headline(advice),
        "sentences": list(words.beside_tables(advice)),
        **_fields(asked, "model model_type device device_name dtype batch tp most_context"),
        **_fields(asked, "memory_bytes weight_bytes devices_for_weights dtype_guess kv_dtype"),
        "weights_source": asked.weights_words or None,
        "decisions": [
            {
                **_fields(one, "phase context"),
                "attn_implementation": one.name_of_best or None,
                "choices": [*map(_choice, one.choices)],
            }
            for one in advice.decisions
        ],
        "memory": [
            {name: _value(found) for name, found in asdict(one).items()}
            | {"total_bytes": one.total_bytes}
            for one in advice.needs
        ],
        "sequences": [one._asdict() for one in advice.sequences],
        "longest": [
            _fields(one, "phase attn_implementation context at_least source")
            | {"limit": None if one.context is None else one.limit}
            for one in advice.longest
        ],
        "traps": advice.traps,
        "not_measured": [_fields(one, "layer count why") for one in advice.not_measured],
        "other_layers": dict(asked.others),
        "states": dict(asked.states),
        "cautions": list(asked.cautions),
        "missing": [
            {**_fields(of, "phase context"), "implementation": one.name} for of, one in missing
        ],
        "commands": list(words.run_commands(advice)),
        "measure": words.measure_command(advice) if missing else None,
        "runs": [str(run.path) for run in advice.runs],
        "not_included": words.not_included(advice),
    }


def _choice(one: Choice) -> dict[str, Any]:
    ratio = one.against
    return {
        "attn_implementation": one.implementation.name,
        "backend": one.implementation.backend,
        **_fields(one, "total_ms why_not"),
        "against_fastest": ratio
        and {
            "ratio": ratio.value,
            **_fields(ratio, "low high paired"),
            "verdict": TIMES.get(ratio.word, ratio.word),
            "mark": mark_word(ratio.mark),
            "reasons": list(ratio.doubts),
        },
        "layers": [*map(_cell, one.cells)],
    }


def _cell(cell: LayerTime) -> dict[str, Any]:
    rate = cell.rate
    return {
        **_fields(cell.asked, "layer count"),
        **_fields(cell, "status reason call_ms peak_bytes kernel"),
        "bytes_per_s": _value(rate.bytes_per_s) if rate else None,
        "bandwidth_ratio": _value(rate.share) if rate else None,
        "run": cell.stored.run.path.name if cell.stored else None,
        "case": cell.stored.row["case"] if cell.stored else None,
    }


def _fields(of: object, names: str) -> dict[str, Any]:
    """Attributes; null for a number that is not finite, and for a text that says nothing."""
    return {name: _value(getattr(of, name)) for name in names.split()}


def _value(found: Any) -> Any:
    if isinstance(found, Interval):
        return _fields(found, "value low high") if isfinite(found.value) else None
    return None if found == "" or (isinstance(found, float) and not isfinite(found)) else found
