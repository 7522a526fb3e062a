"""Numbers, sizes and statuses as a person writes them, and foreign text made harmless."""

import re
from math import isfinite

import humanize

STATUS_WORDS = {
    "ok": "measured",
    "oom": "out of memory",
    "predicted_oom": "out of memory (predicted)",
    "unsupported": "unsupported",
    "unavailable": "unavailable",
    "incorrect": "wrong result",
    "timeout": "time limit",
    "crashed": "crashed",
    "error": "error",
    "interrupted": "interrupted",
    "not reached": "not reached",
}
# C0 and C1 controls, direction marks and overrides, lone surrogates: they move cursors, reorder
# text or cannot be encoded.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_CONTROL_IN_LINES = re.compile(_CONTROL.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
K = 1024  # as in scenarios: 8k is 8192


def visible(text: str, *, lines: bool = False) -> str:
    """The text with every control character spelled out; `lines=True` leaves tabs and line ends."""

    def spell(match: re.Match[str]) -> str:
        code = ord(match.group())
        return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"

    return (_CONTROL_IN_LINES if lines else _CONTROL).sub(spell, text)


def markdown_cell(text: str) -> str:
    """The text for a cell or a line of Markdown, where none of its signs means anything."""
    entities = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
    return re.sub(
        r"[\\`*_\[\]|~$]",
        r"\\\g<0>",
        re.sub("[&<>@]", lambda found: entities[found.group()], visible(text)),
    )


def count_text(count: float) -> str:
    """8192 as 8k, 1000 as 1000."""
    whole = int(count)
    return f"{whole // K}k" if whole and whole % K == 0 else str(whole)


def bytes_text(size_bytes: float | None) -> str:
    return (
        ""
        if size_bytes is None
        else humanize.naturalsize(size_bytes, binary=True).replace(".0 ", " ").replace("Bytes", "B")
    )


def time_text(time_ms: float | None) -> str:
    return "" if time_ms is None else humanize.metric(time_ms / 1000, "s")


def flops_text(work_flops: float | None) -> str:
    return "" if work_flops is None else humanize.metric(work_flops, "FLOP")


def rate_text(flops_per_s: float | None) -> str:
    return "" if flops_per_s is None else humanize.metric(flops_per_s, "FLOP/s")


def number_text(value: float | None) -> str:
    """Three digits, without an exponent where none is needed."""
    if value is None or not isfinite(value):
        return ""
    size = abs(value)
    if 0 < size < 0.001 or size >= 1e6:
        return f"{value:.2e}"
    return (
        f"{value:.0f}"
        if size >= 100
        else f"{value:.1f}"
        if size >= 10
        else f"{value:.2f}"
        if size >= 0.1
        else f"{value:.2g}"
    )


def times_text(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """A ratio, with its interval where there is one: `2.10 times (2.05 to 2.16)`."""
    if value is None or not isfinite(value):
        return ""
    if low is None or high is None or not (isfinite(low) and isfinite(high)):
        return f"{number_text(value)} times"
    return f"{number_text(value)} times ({number_text(low)} to {number_text(high)})"


def list_text(items: list[str]) -> str:
    return (
        items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""
    )


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
