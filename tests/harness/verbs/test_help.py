"""Help: the first screen, the usual options, all of them; and what earlier releases had."""

from typing import Any

import pytest

from attnbench.harness.verbs.app import FIRST, HOMES, verb
from attnbench.harness.verbs.request import declared

LINES, COLUMNS = 24, 80  # of a terminal, one of them for the next prompt


@pytest.fixture
def screen(here: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    return lambda *words: here(*words).stdout


def test_the_first_screen_has_seven_commands_in_a_line_each(screen: Any) -> None:
    lines = screen("-h").splitlines()
    assert len(lines) < LINES
    named = [line.split()[0] for line in lines if line.startswith("  ")]
    assert named == [name for some in FIRST for name in some]
    everything = screen("help", "all")
    assert all(f"\n  {name} " in everything for name in HOMES)
    assert screen("help") == screen("-h")
    assert screen("--help") == everything


def test_without_a_command_the_first_screen_is_shown_on_stdout(here: Any) -> None:
    done = here()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == here("-h").stdout


@pytest.mark.parametrize("name", HOMES)
def test_no_help_is_wider_than_a_terminal_or_shows_internals(screen: Any, name: str) -> None:
    for text in (screen(name, "-h"), screen(name, "--help")):
        assert max(map(len, text.splitlines())) <= COLUMNS
        assert not any(leak in text for leak in ("<", "<=", "]...", "MODULE:ATTRIBUTE"))
    assert screen("help", name) == screen(name, "--help")


@pytest.mark.parametrize("name", HOMES)
def test_the_short_help_fits_a_screen_and_names_the_long_one(screen: Any, name: str) -> None:
    short, long = screen(name, "-h"), screen(name, "--help")
    assert len(short.splitlines()) < LINES
    assert f"attnbench help {name}" in short
    for one in declared(verb(name).request).values():
        flag = f"--{one.name.replace('_', '-')}"
        if one.for_shell and not (one.option.argument or one.option.hidden):
            assert flag in long
            assert flag in short or one.name not in verb(name).usual


def test_help_of_what_there_is_not_names_what_there_is(here: Any) -> None:
    done = here("help", "sohw")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'sohw'; did you mean show?" in done.stderr


def test_help_is_for_the_width_of_the_terminal(here: Any) -> None:
    wide = here("run", "--help", env={"COLUMNS": "200"}).stdout
    narrow = here("run", "--help", env={"COLUMNS": "50"}).stdout
    assert len(narrow.splitlines()) > len(wide.splitlines())
    assert max(map(len, wide.splitlines())) <= 100
