"""Control characters of foreign text reach no terminal: neither from streams nor from consoles."""

import io
import sys
from typing import Any

import pytest
from rich.console import Console

from attnbench.harness.files.printable import SafeStream, file_of, visible
from attnbench.harness.terminal import live_bar
from attnbench.harness.terminal import progress as terminal
from attnbench.harness.terminal.live_bar import SafeConsole

HOSTILE = "a\x1b]0;title\x07\x9b31m\u202eb\u2066\u200b\r"
SHOWN = r"a\x1b]0;title\x07\x9b31m\u202eb\u2066\u200b\x0d"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (HOSTILE, SHOWN),
        ("\ud800", "\\ud800"),
        ("a\tb\n", "a\\x09b\\x0a"),
        ("soft\u00adhyphen", "soft\\xadhyphen"),
        ("\U000e0041", "\\ue0041"),
        ("µ·漢 \u202f", "µ·漢 \u202f"),
    ],
)
def test_control_characters_are_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_safe_stream_writes_visible_text_and_is_otherwise_the_stream() -> None:
    inner = Terminal()
    stream = SafeStream(inner)
    assert stream.write(f"{HOSTILE}\n") == len(HOSTILE) + 1
    stream.writelines([HOSTILE, "\n"])
    assert inner.getvalue() == f"{SHOWN}\n" * 2
    assert stream.isatty()
    assert not hasattr(stream, "buffer")
    assert file_of(SafeStream(stream)) is inner  # type: ignore[arg-type]


def test_a_console_of_rich_colours_what_a_safe_stream_would_spell_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner = Terminal()
    monkeypatch.setattr(sys, "stderr", SafeStream(inner))
    monkeypatch.setenv("TERM", "xterm")
    Console(stderr=True, force_terminal=True).print("[bold]x[/]")
    assert inner.getvalue() == "\x1b[1mx\x1b[0m\n"


@pytest.mark.parametrize("make", [live_bar.console, terminal.lines_console])
def test_our_consoles_keep_their_colours_and_spell_out_foreign_text(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = Terminal()
    monkeypatch.setattr(sys, "stderr", SafeStream(inner))
    out = make()
    assert isinstance(out, SafeConsole)
    out.print(f"[bold]{HOSTILE}[/]", soft_wrap=True)
    text = inner.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert visible(text, lines=True) == text
    assert "\\x1b]0;title" in text
