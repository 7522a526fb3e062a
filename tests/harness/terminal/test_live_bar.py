"""harness/terminal/live_bar.py: the console that foreign text is printed on."""

import io

import pytest

from attnbench.harness.terminal.live_bar import SafeConsole
from attnbench.harness.terminal.progress import table

NARROW, WIDE = "\N{NARROW NO-BREAK SPACE}", "\N{NO-BREAK SPACE}"


def printed(part: object, width: int) -> str:
    file = io.StringIO()
    SafeConsole(file=file, width=width, highlight=False).print(part)
    return file.getvalue()


@pytest.mark.parametrize("space", [NARROW, WIDE])
def test_a_number_is_never_parted_at_the_space_within_it(space: str) -> None:
    number = f"7{space}711"
    for width in range(6, 20):
        found = printed(f"it stops at N = {number} tokens", width)
        assert number in found
        in_table = printed(table("", ("what", "where"), [("stops", f"after {number}")]), width + 8)
        assert number in in_table


def test_nothing_of_ours_stands_for_a_space_in_what_is_printed() -> None:
    found = printed(f"a{NARROW}b{WIDE}c", 40)
    assert found == f"a{NARROW}b{WIDE}c\n"
