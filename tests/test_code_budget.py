"""The budget of code that `make check` holds the tree to."""

import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, ran

PROGRAM = ROOT / ".ci" / "budget.py"
BUDGET = "[lines]\nsource = 4\nother = 2\n[tokens]\nsource = 18\ntests = 3\n"
# 2 lines and 9 tokens of code
FILE = '"""Told.\n\nAt length."""\n\n# a reason\n\n\ndef f():\n    """Told."""\n    return (1)\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree at its budget: two files of two lines each, and a template."""
    for name in ("harness", "impls/masks", "reports", "tests"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "harness/a.py").write_text(FILE)
    (tmp_path / "impls/masks/b.py").write_text(FILE)
    (tmp_path / "reports/page.html").write_text("<p>\n\n</p>\n")
    (tmp_path / "tests/test_a.py").write_text("a = 1\n")
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/budget.toml").write_text(BUDGET)
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "all"]):
        ran(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def judged(tree: Path) -> tuple[int, str]:
    done = ran([sys.executable, PROGRAM], cwd=tree)
    return done.returncode, done.stderr


@pytest.mark.long
def test_a_tree_within_its_budget_passes_whatever_it_explains(tree: Path) -> None:
    assert judged(tree) == (0, "")
    (tree / "harness/a.py").write_text("# why\n" + FILE + "\n\n# and why\n")
    assert judged(tree) == (0, "")


@pytest.mark.long
def test_a_new_line_names_the_folder_that_grew(tree: Path) -> None:
    (tree / "impls/masks/new.py").write_text("a = 1\n")  # not in git yet
    (tree / "harness/a.py").unlink()
    assert judged(tree) == (0, "")  # another folder paid for it
    (tree / "harness/a.py").write_text(FILE)
    code, told = judged(tree)
    assert code == 1
    lines = told.splitlines()
    assert lines[:2] == ["source: 5 lines, at most 4", "source: 21 tokens, at most 18"]
    assert lines[3:] == ["  impls/masks +1"]


@pytest.mark.long
def test_denser_lines_and_another_language_are_counted(tree: Path) -> None:
    (tree / "harness/a.py").write_text(FILE.replace("(1)", "(1, 2, 3)"))
    assert "source: 22 tokens, at most 18" in judged(tree)[1]
    (tree / "harness/a.py").write_text(FILE)
    (tree / "reports/page.html").write_text("<p>\n\n</p>\n<br>\n")
    code, told = judged(tree)
    assert code == 1
    assert "other: 3 lines, at most 2" in told
    assert told.splitlines()[-1] == "  reports +1"


def test_the_budget_is_that_of_this_tree() -> None:
    assert "$(BIN)/python .ci/budget.py" in (ROOT / "Makefile").read_text()
