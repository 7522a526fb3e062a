"""What masks cost: building one alone, beside the call that it is for."""

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
from ..quantity import Quantity
from . import Subject

TITLE = "What masks cost"
SECTION = "asked"
ORDER = 14
NEEDS = ("mask_build_ms", "latency_ms")
MOST_ROWS = 100


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    built = [row for row in rows if is_timed(row) and row.get("mask_build_ms") is not None]
    if not built:
        return Subject(lacking="No backend built a mask.")
    axes = distinguishing_axes(built)
    worst = max(built, key=lambda row: row.get("mask_build_peak_bytes") or 0)
    table = table_of(
        "Masks alone, and the calls that they are for",
        built,
        {
            "problem": lambda row: label(problem(row), axes),
            "backend": lambda row: str(row["backend"]),
            "call": lambda row: Quantity(row["latency_ms"], "ms"),
            "mask": lambda row: Quantity(row["mask_build_ms"], "ms"),
            "peak of the call": lambda row: Quantity(row.get("peak_bytes"), "bytes"),
            "of the mask": lambda row: Quantity(row.get("mask_build_peak_bytes"), "bytes"),
            "of the set-up": lambda row: Quantity(row.get("prepare_peak_bytes"), "bytes"),
            "set-up": lambda row: Quantity(row.get("prepare_ms"), "ms"),
        },
        case=case_key,
        most=MOST_ROWS,
    )
    how = note(
        "naive, fused, sdpa and padded build their mask in each call, so it is part of both; flex"
        " builds a block mask once in its set-up, and it is in neither. Times of masks and set-ups"
        " are single readings of the clock, without an interval; bytes are exact. The set-up of"
        " what compiles has its first call in it."
    )
    return Subject(lines=(f"{capital(finding(worst))}.",), blocks=(how, table))


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
