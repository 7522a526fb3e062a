"""Which files of the user's go to devices elsewhere, and where they are there."""

from pathlib import Path

import pytest

from attnbench.harness.fleet.own_files import own_files

BACKEND = "def prepare(problem, inputs, weights): ...\n"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with modules that import one another, and a folder of backends."""
    for name, text in {
        "attend.py": "import torch, numpy, helpers\nfrom package.part import one\n",
        "helpers.py": "from . import wrong\nimport attend, csv\n",
        "numpy.py": "",
        "csv.py": "",
        "unused.py": "",
        "package/__init__.py": "import deep",
        "package/part.py": "one = 1",
        "deep.py": "not python (",
        "space/inside.py": "import data",
        "data/large.txt": "",
        "backends/fast.py": f"import on_path\n{BACKEND}",
        "path/on_path.py": "import attend",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path / "backends"))
    return tmp_path


def names_of(paths: list[Path]) -> list[str]:
    return sorted(path.name for path in paths)


def test_a_module_goes_with_what_it_imports_from_beside_it_and_nothing_installed(mine) -> None:
    named = ("sdpa", "f@attend", "g@space.inside", "no_such")
    modules, folders = own_files(named, allow_import=True)
    assert names_of(modules) == ["attend.py", "deep.py", "helpers.py", "package", "space"]
    assert folders == []


def test_a_folder_of_backends_goes_whole_and_the_current_folder_only_if_that_is_allowed(
    mine: Path,
) -> None:
    modules, folders = own_files(["fast"], allow_import=False)
    assert (names_of(modules), folders) == (["on_path.py"], [mine / "backends"])
    modules, _ = own_files(["fast"], allow_import=True)
    assert names_of(modules) == ["attend.py", "deep.py", "helpers.py", "on_path.py", "package"]
