"""What masks and compiling cost: building a mask alone, beside the call that it is for, and how
long compilers took before it.
"""

from collections.abc import Sequence

from ..data.row_groups import (
    Row,
    axis_text,
    case_key,
    distinguishing_axes,
    is_timed,
    label,
    problem,
)
from ..data.run_meta import Meta
from ..elements import note, table_of
from ..formatting import bytes_text, capital, number_text, time_text
from ..quantity import Quantity, Unit
from . import Subject

TITLE = "What masks and compiling cost"
SECTION = "asked"
ORDER = 14
MOST_ROWS = 100


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    timed = [row for row in rows if is_timed(row)]
    built, compiled = (
        [row for row in timed if row.get(name) is not None]
        for name in ("mask_build_ms", "compile_ms")
    )
    either = [*built, *(row for row in compiled if row.get("mask_build_ms") is None)]
    if not either:
        return Subject(lacking="No backend built a mask, and nothing was compiled.")
    axes = distinguishing_axes(either)
    table = table_of(
        "Masks alone and compiling, and the calls that they are for",
        either,
        {
            "problem": lambda row: label(problem(row), axes),
            "backend": lambda row: str(row["backend"]),
            "call": lambda row: Quantity(row["latency_ms"], "ms"),
            "mask": lambda row: _known(row, "mask_build_ms", "ms"),
            "peak of the call": lambda row: Quantity(row.get("peak_bytes"), "bytes"),
            "of the mask": lambda row: _known(row, "mask_build_peak_bytes", "bytes"),
            "of the set-up": lambda row: Quantity(row.get("prepare_peak_bytes"), "bytes"),
            "set-up": lambda row: Quantity(row.get("prepare_ms"), "ms"),
            "compiling": lambda row: _known(row, "compile_ms", "ms"),
        },
        optional=("mask", "of the mask", "compiling"),
        case=case_key,
        most=MOST_ROWS,
    )
    how = note(
        "naive, fused, sdpa and padded build their mask in each call, so it is part of both; flex"
        " builds a block mask once in its set-up, and it is in neither. Times of masks and set-ups"
        " are single readings of the clock, without an interval; bytes are exact. The set-up of"
        " what compiles has its first call in it, and compiling, as the compilers count it, unless"
        " that was ahead of it."
    )
    worst = max(built, key=lambda row: row.get("mask_build_peak_bytes") or 0, default=None)
    longest = max(compiled, key=lambda row: row["compile_ms"], default=None)
    lines = [f"{capital(finding(worst))}."] if worst else []
    if longest:
        time, at = time_text(longest["compile_ms"]), axis_text("seq_len", longest["seq_len"])
        lines.append(f"Compiling {longest['backend']} took {time} before its first call ({at}).")
    return Subject(lines=tuple(lines), blocks=(how, table))


def _known(row: Row, name: str, unit: Unit) -> Quantity | str:
    """Empty where it is null: there was none."""
    return "" if row.get(name) is None else Quantity(row[name], unit)


def finding(worst: Row) -> str:
    """`building the mask of flex took 120 ms in one reading and up to 27 MiB, 5.1 times the peak of
    a call`.
    """
    peak, built = worst.get("peak_bytes"), worst.get("mask_build_peak_bytes")
    spent = f"{time_text(worst['mask_build_ms'])} in one reading"
    text = f"building the mask of {worst['backend']} took {spent}"
    if built is None:
        return text
    text += f" and up to {bytes_text(built)}"
    times = f", {number_text(built / peak)} times the peak of a call" if peak else ""
    return f"{text}{times} ({axis_text('seq_len', worst['seq_len'])})"
