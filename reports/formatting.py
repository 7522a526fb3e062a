"""Numbers, sizes and statuses as text, and foreign text in Markdown."""

import re
from collections.abc import Callable, Collection, Sequence
from math import isfinite, isnan
from typing import Any

import humanize

from ..harness.files.printable import spaced, visible
from ..harness.rows.record import Status
from ..harness.stats.wide_intervals import MOST_TIMES, ratio_says_nothing, says_nothing


class Number(str):
    """A number as text: columns of a table that hold it are aligned as numbers."""

    __slots__ = ()


STATUS_WORDS = {status.value: status.value for status in Status} | {
    "ok": "measured",
    "oom": "out of memory",
    "predicted_oom": "would not fit (calculated)",
    "incorrect": "wrong result",
    "timeout": "time limit",
    "not reached": "not reached",
}
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
K = 1024  # as in scenarios: 8k is 8192
BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB")


def markdown_cell(text: str) -> str:
    """The text for a cell or a line of Markdown, with all markup escaped."""
    entities = re.sub("[&<>@]", lambda found: _ENTITIES[found.group()], visible(text))
    return re.sub(r"[\\`*_\[\]|~$]", r"\\\g<0>", entities)


def markdown_grid(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()
) -> str:
    """A table in Markdown; the cells are Markdown already. `right`: columns aligned right."""
    rule = ["---:" if column in right else "---" for column in range(len(columns))]
    lines = (columns, rule, *rows)
    return "\n".join(f"| {' | '.join(cell or ' ' for cell in line)} |" for line in lines)


def count_text(count: float) -> Number:
    """8192 as 8k, 1000 as 1000."""
    whole = int(count)
    return Number(f"{whole // K}k" if whole and whole % K == 0 else str(whole))


def length_text(count: int) -> Number:
    """2848 as 2 848, with a thin space."""
    return Number(spaced(count))


def bytes_text(size_bytes: float | None) -> Number:
    if size_bytes is None:
        return Number("")
    text = humanize.naturalsize(size_bytes, binary=True)
    return Number(text.replace(".0 ", " ").replace("Bytes", "B").replace("Byte", "B"))


def size_text(size_bytes: float | None) -> Number:
    """For sentences: `65 MiB`, `4 GiB`, `1.5 GiB`."""
    if size_bytes is None:
        return Number("")
    size, units = float(size_bytes), iter(BINARY_UNITS)
    unit = next(units)
    while size >= K - 0.5 and (larger := next(units, "")):  # 1023.7 KiB is written as 1 MiB
        size, unit = size / K, larger
    return Number(f"{size:.0f} {unit}" if size >= 10 else f"{size:.1f} {unit}".replace(".0 ", " "))


def _prefixed(unit: str, scale: float = 1.0) -> Callable[[float | None], Number]:
    """With a prefix of powers of ten, as data sheets have it: `9.81 GB/s`."""
    return lambda size: Number("" if size is None else humanize.metric(size * scale, unit))


time_text = _prefixed("s", 1e-3)
flops_text, rate_text, bandwidth_text = map(_prefixed, ("FLOP", "FLOP/s", "B/s"))


def number_text(value: float | None) -> Number:
    """Three significant digits, two below 1, without an exponent unless it is needed."""
    if value is None or not isfinite(value):
        return Number("")
    size = abs(float(f"{value:.3g}"))  # as written: 9.996 is 10.0
    if 0 < size < 0.001 or size >= 1e6:
        return Number(f"{value:.2e}")
    digits = ".0f" if size >= 100 else ".1f" if size >= 10 else ".2f" if size >= 0.1 else ".2g"
    return Number(f"{value:{digits}}")


def whole_text(value: float | None) -> Number:
    """`3` for a whole number, three significant digits for any other."""
    if value is None or not isfinite(value) or value != int(value):
        return number_text(value)
    return Number(str(int(value)))


def percent_text(share: float) -> Number:
    return Number(f"{number_text(100 * share)} %")


def rough_percent_text(share: float) -> Number:
    """Two significant digits, of what another run would find otherwise: `12 %`, `3 400 %`."""
    percent = float(f"{100 * share:.2g}")
    return Number(f"{length_text(int(percent)) if percent >= 1000 else f'{percent:g}'} %")


def share_text(share: float, of: str = "") -> Number:
    """A part of a whole, which cannot be more than 100 %: `81.0 %`, `130 % (impossible)`.

    `of` says for what more is impossible, if something else explains it: `130 % (impossible for the
    memory alone)`.
    """
    return Number(percent_text(share) + beyond_text(share, of))


def beyond_text(share: float, of: str = "") -> str:
    """` (impossible)`, to append to a share that is written as more than 100 %; else ""."""
    return f" (impossible{f' {of}' if of else ''})" if beyond_whole(share) else ""


def beyond_whole(share: float) -> bool:
    """Whether the share would be written as more than 100 %."""
    if not isfinite(100 * share):
        return isfinite(share) and share > 0
    return float(number_text(100 * share)) > 100


def kernel_text(kernel: str | None, generation: str | None) -> str:
    """`flash (FA4)`: several generations answer to one operator's name."""
    return f"{kernel} ({generation})" if kernel and generation else kernel or ""


UNCERTAIN = f"uncertain by more than {MOST_TIMES:.0f} times"
"""In place of bounds that say nothing; files of numbers have the bounds all the same."""


def ratio_bounds_text(
    low: float | None, high: float | None, text: Callable[[float], str] = number_text
) -> str:
    """The interval of a ratio, wherever one is written: `2.05 to 2.16`, or that it is too wide to
    decide anything; "" without an interval.
    """
    return bounds_text(low, high, text, ratio_says_nothing)


def measured_bounds_text(
    low: float | None, high: float | None, text: Callable[[float], str] = number_text
) -> str:
    """The same of a time or a rate, which has no 1 to be beside."""
    return bounds_text(low, high, text, says_nothing)


def bounds_text(
    low: float | None,
    high: float | None,
    text: Callable[[float], str],
    is_too_wide: Callable[[float, float], bool] = lambda low, high: False,
) -> str:
    """The same of what may be 0 or less."""
    if low is None or high is None or isnan(low) or isnan(high):
        return ""
    if is_too_wide(low, high):
        return UNCERTAIN
    return Number(f"{text(low)} to {text(high)}") if isfinite(low) and isfinite(high) else ""


def ratio_range_text(low: float | None, high: float | None) -> str:
    """` (2.05 to 2.16)`, to append to a ratio; "" without an interval."""
    return in_brackets(ratio_bounds_text(low, high))


def in_brackets(text: str) -> str:
    """To append to a value; "" for none."""
    return f" ({text})" if text else ""


def times_text(value: float | None, low: float | None = None, high: float | None = None) -> Number:
    """A ratio with its interval, if it has one: `2.10 times (2.05 to 2.16)`."""
    if value is None or not isfinite(value):
        return Number("")
    return Number(f"{number_text(value)} times{ratio_range_text(low, high)}")


def json_fields(of: object, *names: str) -> dict[str, Any]:
    """Attributes for an object of JSON; a number that is not finite is null."""
    found = {name: getattr(of, name) for name in names}
    return {
        name: None if isinstance(value, float) and not isfinite(value) else value
        for name, value in found.items()
    }


def list_text(items: Sequence[str], most: int | None = None) -> str:
    """`a, b and c`; with more than `most` items `a, b and 3 more`."""
    if most is not None and len(items) > most:
        items = [*items[: most - 1], f"{len(items) - most + 1} more"]
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def capital(text: str) -> str:
    """With a capital, as a sentence begins; a symbol such as the h of `h = 1` keeps its case."""
    if text.split(maxsplit=2)[1:2] == ["="]:
        return text
    return f"{text[:1].upper()}{text[1:]}"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """`1 case`, `2 cases`; `nouns` if the plural is irregular."""
    return f"{count} {noun if count == 1 else nouns or f'{noun}s'}"


def more_below(count: int) -> str:
    """`3 more problems below.`; "" for none."""
    return f"{plural(count, 'more problem')} below." if count > 0 else ""


def paragraph(*sentences: str) -> str:
    """Those that say something."""
    return " ".join(filter(None, sentences))
