"""The defects of `make net-proof`: each can be planted, and what should notice it is there."""

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.net_proof.__main__ import copied, first_failure
from tests.net_proof.defects import DEFECTS, Defect, NotPlanted, Patch

WRONG = Defect(
    name="a sum is wrong",
    patches=(Patch("adds.py", "a + b", "a - b"),),
    noticed_by=("test_adds.py",),
)


def test_there_are_24_defects() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) == 24


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_can_be_planted_and_its_tests_are_there(defect: Defect) -> None:
    """Whoever rewrites its place plants it anew in the same commit."""
    for path, text in defect.patched(ROOT).items():
        assert text != (ROOT / path).read_text()
    assert defect.noticed_by or defect.missed
    for test in defect.noticed_by:
        path, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text()


@pytest.mark.long
def test_a_defect_is_noticed_by_the_test_that_fails_and_is_taken_out_again(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["gpu"]\n')
    (tmp_path / "adds.py").write_text("def add(a, b):\n    return a + b\n")
    test = "from adds import add\n\n\ndef test_sum():\n    assert add({}) == 4\n"
    (tmp_path / "test_adds.py").write_text(test.format("2, 2"))
    assert first_failure(tmp_path, WRONG.noticed_by).test == ""
    with WRONG.planted(tmp_path):
        found = first_failure(tmp_path, WRONG.noticed_by)
    assert (found.test, found.why[:13]) == ("test_adds.py::test_sum", "assert 0 == 4")
    assert first_failure(tmp_path, WRONG.noticed_by).test == ""
    (tmp_path / "test_adds.py").write_text(test.format("4, 0"))
    with WRONG.planted(tmp_path):
        assert first_failure(tmp_path, WRONG.noticed_by).test == "", "which does not notice it"


def test_a_defect_that_applies_no_more_is_no_defect(tmp_path: Path) -> None:
    (tmp_path / "adds.py").write_text("def add(a, b):\n    return sum((a, b))\n")
    with pytest.raises(NotPlanted, match=r"a sum is wrong: adds\.py has 0 times"):
        WRONG.patched(tmp_path)


@pytest.mark.long
def test_the_copy_has_what_git_has_and_what_is_new_but_nothing_ignored(tmp_path: Path) -> None:
    copied(tmp_path)
    assert (tmp_path / ".package" / "attnbench" / "harness").is_symlink()
    assert (tmp_path / ".package" / "attnbench" / "harness" / "__init__.py").is_file()
    assert not (tmp_path / ".venv").exists()
