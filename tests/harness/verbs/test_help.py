"""Help: the first screen, the usual options, all of them; and what earlier releases had."""

from typing import Any

import pytest

from attnbench.harness.verbs.app import FIRST, HIDDEN, HOMES, verb
from attnbench.harness.verbs.request import declared

LINES, COLUMNS, USUAL = 24, 80, 12  # of a terminal, one of them for the next prompt; options of -h
FIRST_LINES = 15


@pytest.fixture
def screen(here: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    return lambda *words: here(*words).stdout


def test_the_first_screen_has_seven_commands_in_a_line_each(here: Any, screen: Any) -> None:
    lines = screen("-h").splitlines()
    assert len(lines) == FIRST_LINES
    assert "begin with: attnbench run quickstart" in lines
    named = [line.split()[0] for line in lines if line.startswith("  ")]
    assert named == [name for some in FIRST for name in some]
    everything = screen("help", "all")
    assert all((f"\n  {name} " in everything) != (name in HIDDEN) for name in HOMES)
    assert screen("help") == screen("-h") == screen()
    assert (here().returncode, here().stderr) == (0, "")
    assert screen("--help") == everything


@pytest.mark.parametrize("name", HOMES)
def test_the_short_help_fits_a_screen_and_the_long_one_has_every_option(
    screen: Any, name: str
) -> None:
    short, long = screen(name, "-h"), screen(name, "--help")
    assert len(short.splitlines()) < LINES
    assert max(map(len, (short + long).splitlines())) <= COLUMNS
    assert not any(leak in short + long for leak in ("<", "]...", "MODULE:ATTRIBUTE"))
    assert f"attnbench help {name}" in short
    assert screen("help", name) == long
    known = declared(verb(name).request)
    assert len(verb(name).usual.split() or known) <= USUAL + 2
    for one in known.values():
        flag = one.value if one.argument else f"--{one.name.replace('_', '-')}"
        shown = one.for_shell and not one.hidden
        assert (flag in long) == shown or not shown, flag
        assert one.help or not shown, one.name
        if isinstance(one.default, int) and one.default and shown:
            assert f"(default: {one.default})" in long


def test_help_of_what_there_is_not_names_what_there_is(here: Any) -> None:
    done = here("help", "sohw")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'sohw'; did you mean show?" in done.stderr


def test_help_is_for_the_width_of_the_terminal(here: Any) -> None:
    wide = here("run", "--help", env={"COLUMNS": "200"}).stdout
    narrow = here("run", "--help", env={"COLUMNS": "50"}).stdout
    assert len(narrow.splitlines()) > len(wide.splitlines())
    assert max(map(len, wide.splitlines())) <= 100
