"""What masks and compiling cost: building a mask alone, beside the call that it is for, and how
long compilers took before it. All rows has both of every case.
"""

from collections.abc import Sequence

from ..data.row_groups import Row, axis_text, is_timed
from ..data.run_meta import Meta
from ..formatting import bytes_text, number_text, time_text
from . import Subject

TITLE = "What masks and compiling cost"
SECTION = "asked"
ORDER = 14
HOW = "Only flex builds its mask in the set-up; others do so in each call, whose time has it."


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """Of the mask with the highest peak, and of the longest compilation."""
    built, compiled = (
        [row for row in rows if is_timed(row) and row.get(name) is not None]
        for name in ("mask_build_ms", "compile_ms")
    )
    lines = []
    if built:
        worst = max(built, key=lambda row: row.get("mask_build_peak_bytes") or 0)
        lines.append(f"{finding(worst)}. {HOW}")
    if compiled:
        longest = max(compiled, key=lambda row: row["compile_ms"])
        time, at = time_text(longest["compile_ms"]), axis_text("seq_len", longest["seq_len"])
        lines.append(f"Compiling {longest['backend']} took {time} before its first call ({at}).")
    lacking = "No backend built a mask, and nothing was compiled."
    return Subject(lines=tuple(lines), lacking=lacking)


def finding(worst: Row) -> str:
    """`Building the mask of flex took 120 ms in one reading and up to 27 MiB, 5.1 times the peak of
    a call (N = 4k)`.
    """
    peak, built = worst.get("peak_bytes"), worst.get("mask_build_peak_bytes")
    spent = f"{time_text(worst['mask_build_ms'])} in one reading"
    text = f"Building the mask of {worst['backend']} took {spent}"
    if built is None:
        return text
    text += f" and up to {bytes_text(built)}"
    times = f", {number_text(built / peak)} times the peak of a call" if peak else ""
    return f"{text}{times} ({axis_text('seq_len', worst['seq_len'])})"
