"""Foreign text on its way to a terminal: nothing in it moves a cursor, reorders or hides text.

Names of backends, reasons, file names and logs come from others. Whatever is printed goes through
`SafeStream` or live_bar.SafeConsole, so that no caller has to think of it.
"""

import re
from typing import TextIO

# C0 and C1 controls, direction marks and overrides, characters without width, tags, lone
# surrogates: they move cursors, reorder text, hide it or cannot be encoded.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_CONTROL_IN_LINES = re.compile(_CONTROL.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))


def visible(text: str, *, lines: bool = False) -> str:
    """The text with control characters escaped; `lines=True` keeps tabs and line ends."""

    def escaped(match: re.Match[str]) -> str:
        code = ord(match.group())
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return (_CONTROL_IN_LINES if lines else _CONTROL).sub(escaped, text)


def spaced(count: float) -> str:
    """4093 as 4 093, with a narrow space that does not break."""
    return f"{round(count):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


class SafeStream:
    """A text stream, of which what is written is made `visible` in lines; otherwise as `stream`.

    It has no `buffer`, so that nobody writes past it but rich's consoles, which colour text.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # where a console of rich writes

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(visible(text, lines=True))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        if name == "buffer":
            raise AttributeError("a stream for text alone")
        return getattr(self.rich_proxied_file, name)


def duration_text(seconds: float) -> str:
    """'8 s', '50 s', '4 min', '2 h 10 min', in two digits."""
    if seconds < 90:
        step = 1 if seconds < 10 else 5 if seconds < 30 else 10
        return f"{max(1, step * round(seconds / step))} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(10 * round(minutes / 10), 60)
    return f"{hours} h {rest} min" if rest and hours < 10 else f"{hours} h"


def file_of(stream: TextIO) -> TextIO:
    """What a stream's wrappers write to: those of this module, and those of a live display."""
    while (inner := getattr(stream, "rich_proxied_file", None)) is not None:
        stream = inner
    return stream
