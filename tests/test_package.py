"""What users install is what stands here: one import name over the four folders."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import attnbench
from tests.conftest import ROOT, ran
from tests.search_path import searched


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what is packed."""
    shutil.copytree(ROOT / ".package", tmp_path / "tree" / ".package", symlinks=True)
    for name in ("harness", "impls", "reports", "scenarios"):
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / "tree" / name, ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / "tree" / name)
    return tmp_path / "tree"


def build(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist"]
    return ran(command, cwd=tree, env=None)


@pytest.mark.long
def test_only_listed_files_are_packed(tree, built):
    private = [
        *(".env", ".pypirc", "notes.py", "results/private/rows.jsonl", ".git/config"),
        *("harness/.env", "harness/notes.txt", "scenarios/.mine.yaml", "reports/pages/page.key"),
        *(".package/token", ".package/attnbench/.pypirc"),
    ]
    for name in private:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("secret")
    assert build(tree).returncode == 0

    def packed(folder: Path) -> set[str]:
        with tarfile.open(next(folder.glob("*.tar.gz"))) as files:
            (wheel,) = folder.glob("*.whl")
            return {*files.getnames(), *zipfile.ZipFile(wheel).namelist()}

    left = {name.split("/", 1)[-1] for name in packed(tree / "dist")}
    left = {name for name in left if "/rows/published/" not in name}  # rows that others printed
    assert not {name for name in left if name.endswith((".env", ".pypirc", ".key", ".jsonl"))}
    # .gitignore is not in the copy, and hatchling packs it where it is
    assert packed(built) - packed(tree / "dist") <= {
        f"attnbench-{attnbench.__version__}/.gitignore"
    }
    assert packed(tree / "dist") <= packed(built)


@pytest.mark.long
@pytest.mark.parametrize("link", ["harness", "impls", "reports", "scenarios"])
def test_links_that_were_checked_out_as_text_end_the_build_and_the_first_import_in_one_line(
    link, tree
):
    path = tree / ".package" / "attnbench" / link
    target = path.readlink()
    path.unlink()
    path.write_text(str(target))
    done = build(tree)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f".package/attnbench/{link}: found no folder; wanted a symbolic")
    found = {"PYTHONPATH": str(tree / ".package")}
    used = ran([sys.executable, "-m", "attnbench", "--version"], cwd=tree, env=found)
    assert (used.returncode, used.stderr.splitlines()[-1]) == (1, f"ImportError: {last}")
    assert not (tree / "dist").exists() or not list((tree / "dist").iterdir())


@pytest.mark.parametrize(
    "unsafe",
    [
        r"\bimport pickle",
        r"torch\.load\(",
        r"yaml\.load\(",
        r"\beval\(",
        r"\bexec\(",
        r"shell=True",
    ],
)
def test_nothing_that_runs_foreign_data_is_used(unsafe):
    for folder in ("harness", "impls", "reports"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not re.search(unsafe, path.read_text()), path


def test_files_fit_a_sitting():
    for folder in ("harness", "impls", "reports"):
        for path in (ROOT / folder).rglob("*.py"):
            # of 100 columns: what one reader takes in at a sitting
            assert len(path.read_text().splitlines()) <= 400, f"{path}: split it"


@pytest.mark.long
def test_pytest_benchmark_lists_and_compares_inside_a_checkout(tmp_path):
    """Its program reads our conftest.py without the checkout on sys.path."""
    code = "import sys; from pytest_benchmark.cli import main; sys.exit(main())"
    storage = f"--storage=file://{tmp_path}"
    for words in (["list"], ["compare"]):
        ran(
            [sys.executable, "-P", "-c", code, storage, *words],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": searched(ROOT / ".package")},
            check=True,
        )
