"""Help: the first screen, the usual options, all of them; and what earlier releases had."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from attnbench.harness.verbs.app import FIRST, USUAL, app

LINES, COLUMNS = 24, 80  # of a terminal, one of them for the next prompt


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, *path, name)


ALL = dict(commands(typer.main.get_command(app), "attnbench"))


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
    assert all(
        f"\n  {path[1]} " in everything for path in ALL if len(path) == 2 and path[1] != "help"
    )
    assert screen("help") == screen("-h")
    assert screen("--help") == everything


@pytest.mark.parametrize("path", [path[1:] for path in ALL if path[1:]], ids=" ".join)
def test_no_help_is_wider_than_a_terminal_or_shows_internals(screen: Any, path: tuple[str]) -> None:
    for text in (screen(*path, "-h"), screen(*path, "--help")):
        assert max(map(len, text.splitlines())) <= COLUMNS
        assert not any(leak in text for leak in ("<", "<=", "]...", "MODULE:ATTRIBUTE"))
    assert screen("help", *path) == screen(*path, "--help")


@pytest.mark.parametrize("verb", USUAL)
def test_the_short_help_fits_a_screen_and_names_the_long_one(screen: Any, verb: str) -> None:
    short, long = screen(verb, "-h"), screen(verb, "--help")
    assert len(short.splitlines()) < LINES
    assert f"attnbench help {verb}" in short
    for option in USUAL[verb].split():
        assert option in short
    names = {one.opts[0] for one in ALL["attnbench", verb].params if not getattr(one, "hidden", 0)}
    assert all(name in long for name in names if name.startswith("-"))


def test_help_of_what_there_is_not_names_what_there_is(here: Any) -> None:
    done = here("help", "sohw")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'sohw'; did you mean show?" in done.stderr


def test_help_is_for_the_width_of_the_terminal(here: Any) -> None:
    wide = here("run", "--help", env={"COLUMNS": "200"}).stdout
    narrow = here("run", "--help", env={"COLUMNS": "50"}).stdout
    assert len(narrow.splitlines()) > len(wide.splitlines())
    assert max(map(len, wide.splitlines())) <= 100
