"""Reports read files: they work without torch."""

import sys
from pathlib import Path

import pytest

from tests.conftest import ran
from tests.made_runs import quickstart

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # an import of it raises ModuleNotFoundError
import attnbench
from attnbench.harness.verbs.app import main
print(len(attnbench.load(sys.argv[1])))
for line in sys.argv[2:]:
    sys.argv = ["attnbench", *line.split()]
    try:
        main()
    except SystemExit as end:
        print(f"{end.code or 0}: {line}", file=sys.stderr)
"""


def without_torch(folder: Path, run: Path, *lines: str) -> tuple[str, list[str]]:
    done = ran([sys.executable, "-c", WITHOUT_TORCH, run, *lines], cwd=folder, check=True)
    return done.stdout, done.stderr.splitlines()


@pytest.mark.long
def test_what_measures_says_in_a_line_that_it_needs_torch(tmp_path: Path) -> None:
    measuring = ["run quickstart", "run quickstart --dry-run", "list backends", "doctor"]
    _, said = without_torch(tmp_path, quickstart(tmp_path), *measuring)
    assert said[1::2] == [f"4: {line}" for line in measuring]
    found = {line.partition(",")[0] for line in said[::2]}
    assert found == {"error: torch is not installed; measuring needs it"}


@pytest.mark.long
def test_a_report_needs_neither_torch_nor_pyplot() -> None:
    imports = (
        "import sys, attnbench.reports.pages.html; from attnbench.reports.exports import load,"
        " names; list(map(load, names()))"
    )
    code = imports + "; print([m for m in ('torch', 'matplotlib.pyplot') if m in sys.modules])"
    assert ran([sys.executable, "-c", code], check=True).stdout == "[]\n"
