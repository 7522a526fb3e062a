"""The recipes of CONTRIBUTING.md: one file of each kind, added to a copy of the tree, is enough.

Each is used as a user would: from the command line to the page. Then the tests that take up every
file of a folder run in that copy.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.conftest import ROOT, ran
from tests.made_runs import read_rows
from tests.search_path import searched

FOLDERS = (".package", "harness", "impls", "reports", "scenarios", "tests", "docs")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CITATION.cff")
FILES = ("Makefile", "pyproject.toml", *PAGES)

ADDED = {
    "impls/halves.py": '''
"""The plain formula, for half of the queries at a time."""

import torch

from .layer import as_call

COMPUTES = ("temperature",)


def why_not(problem, device):
    return "causal problems are not implemented" if problem.causal else None


def prepare(problem, inputs, weights):
    group, scale = problem.heads // problem.kv_heads, problem.scale / problem.temperature

    def attend(q, k, v):
        k, v = (x.repeat_interleave(group, 1) for x in (k, v))
        parts = [(half @ k.mT * scale).softmax(-1) @ v for half in q.tensor_split(2, 2)]
        return torch.cat(parts, 2)

    return as_call(problem, inputs, weights, attend)
''',
    "reports/exports/names_only.py": '''
"""The names of the cases, a line each below a title."""

from ..data.load import rows_of
from . import Exported

MEANING = "the names of the cases, a line each"


def export(runs):
    lines = "".join(f"{case}\\n" for case in ("case", *(row["case"] for row in rows_of(runs))))
    notes = tuple(note for run in runs for note in run.notes)
    return Exported(content=lines, notes=notes)
''',
    "scenarios/five_files.yaml": """
# yaml-language-server: $schema=schema.json
# attnbench run five_files
name: five_files
question: Does one new file of each kind suffice?
takes_min: 1
backends: [fused, halves]
baseline: fused
grid: {batch: 1, seq_len: [32, 64], d_model: 32, heads: 2}
plan: {like: quick, window_s: 0.2, budget_s: 0.2}
measure: [latency, memory, waits]
studies: [mine]
""",
}
SHOWN = (
    "impls/axes/temperature.py",
    "impls/masks/mine.py",
    "harness/devices/probes/mine.py",
    "harness/studies/mine.py",
    "reports/subjects/mine.py",
)
"""Files that CONTRIBUTING.md shows whole."""
LINES = {
    "impls/problem_fields.py": "    softcap: float = 0.0\n",
    "harness/rows/fields.py": "    kernel_requested: str | None = None\n",
    "harness/worker/check.py": '            "first_call_ms": first_call_ms,\n',
}
"""Files of which CONTRIBUTING.md shows what to add, each with the line that it is added before."""
README = (
    "scenarios/README.md",
    "| `temperature` | 1 | by what scaled scores are divided |\n",
    "| `sinks`",
)
"""Likewise what users read of an axis."""
BY_COMMAND = {
    "scenarios/schema.json": "tests/scenarios/test_shipped.py::test_the_schema_is_current",
    "docs/format.md": "tests/harness/rows/test_tables.py::test_the_document_shows_the_table",
}
"""What `make approve` renews, and by which of its tests."""


def shown(name: str) -> str:
    """The indented block that begins with the file's name."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = re.search(rf"^    # {name}\n((?:(?: {{4}}.*)?\n)+)", page, re.M)
    assert block is not None, name
    return textwrap.dedent(block[1])


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with the new files and no other change."""
    house = tmp_path_factory.mktemp("house")
    ignore = shutil.ignore_patterns("__pycache__", ".*_cache")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, house / folder, symlinks=True, ignore=ignore)
    for file in FILES:
        shutil.copy(ROOT / file, house)
    (house / "results" / "published").mkdir(parents=True)
    for page in ("README.md", "published/README.md"):
        shutil.copy(ROOT / "results" / page, house / "results" / page)
    for name, content in (ADDED | {name: shown(name) for name in SHOWN}).items():
        assert not (house / name).exists()
        (house / name).write_text(content.lstrip("\n"))
    for name, before in LINES.items():
        indent = before[: -len(before.lstrip())]
        add(house / name, textwrap.indent(shown(name), indent), before)
    add(house / README[0], *README[1:])
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *BY_COMMAND.values())
    python(house, *tests, ATTNBENCH_APPROVE="1")
    return house


def add(file: Path, text: str, before: str) -> None:
    first, found, rest = file.read_text().partition(before)
    assert found, (file, before)
    file.write_text(first + text + found + rest)


def python(house: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": searched(house / ".package"), "OMP_NUM_THREADS": "1"}
    environment |= more
    environment.pop("ATTNBENCH_BACKENDS", None)
    return ran([sys.executable, *arguments], cwd=house, env=environment, timeout=900)


def attnbench(house: Path, *arguments: str) -> str:
    done = python(house, "-m", "attnbench", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def run(house: Path) -> Path:
    """The folder of the new scenario's run."""
    return house / attnbench(house, "run", "five_files", "--device", "cpu").strip()


@pytest.mark.long
@pytest.mark.parametrize(("what", "name"), [("backends", "halves"), ("probes", "wait_count")])
def test_a_new_file_is_listed(house: Path, what: str, name: str) -> None:
    assert name in attnbench(house, "list", what)


@pytest.mark.long
def test_a_new_mask_an_axis_and_a_column_reach_the_rows_and_the_page(house: Path) -> None:
    sizes = ("--seq-len", "32", "--d-model", "16", "--heads", "2", "--mask", "none,mine")
    plan = ("--backends", "naive,halves", "--device", "cpu", "--plan", "quick", "--temperature")
    run = house / attnbench(house, "run", *sizes, *plan, "1,2.5").strip()
    rows = [row for row in read_rows(run) if row["kind"] == "latency"]
    ok = [row for row in rows if row["status"] == "ok"]
    assert {row["case"].partition("-forward")[0] for row in ok} == {
        "naive-b1-n32-d16-h2-fp32",
        "naive-b1-n32-d16-h2-fp32-mine4",
        "halves-b1-n32-d16-h2-fp32",
        "halves-b1-n32-d16-h2-fp32-temp2.5",
    }
    assert {row["reason"] for row in rows} == {
        "",
        "does not compute the mask mine",
        "does not compute temperature 2.5; see halves",
    }
    assert {row["output_count"] for row in ok} == {2 * 32 * 8}
    page = Path(attnbench(house, "show", str(run), "--format", "html").strip()).read_text()
    assert "temperature 2.5" in page
    assert ">outputs</th>" in page
    done = python(house, "-m", "attnbench", "run", *sizes, *plan, "0")
    assert done.returncode == 2
    assert "temperature is 0.0; wanted a positive number" in done.stderr


@pytest.mark.long
def test_nothing_but_the_files_of_the_recipes_changed(house: Path) -> None:
    changed = {
        str(file.relative_to(house))
        for folder in FOLDERS
        for file in (house / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and not file.is_symlink()
        if not (old := ROOT / file.relative_to(house)).exists()
        or old.read_bytes() != file.read_bytes()
    }
    assert changed == {*ADDED, *SHOWN, *LINES, README[0], *BY_COMMAND}
    recipes = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert all(name in recipes for name in (README[0], *BY_COMMAND))


@pytest.mark.long
def test_a_new_backend_probe_study_and_scenario_reach_the_rows(run: Path) -> None:
    rows = read_rows(run)
    assert {row["status"] for row in rows} == {"ok"}
    cases = [row for row in rows if row["kind"] == "latency"]
    assert sorted((row["backend"], row["seq_len"]) for row in cases) == [
        ("fused", 32),
        ("fused", 64),
        ("halves", 32),
        ("halves", 64),
    ]
    assert all(row["peak_bytes"] >= row["output_bytes"] > 0 for row in cases)
    assert all(window["wait_count"] >= 0 for row in cases for window in row["windows"])
    (study,) = [row for row in rows if row["kind"] == "study"]
    assert study["findings"] == [{"heads_count": 2, "width_ratio": 0.5}]


@pytest.mark.long
def test_a_new_file_of_each_kind_reaches_the_page(house: Path, run: Path) -> None:
    written = Path(attnbench(house, "show", str(run), "--format", "html").strip())
    page = "".join(one.read_text() for one in written.parent.glob("report*.html"))
    assert "Does one new file of each kind suffice?" in page
    assert "halves" in page
    assert "My subject" in page
    assert "4 cases." in page
    assert re.search(r"[Ww]ait(s|_count)?\W[^a-z]", page)  # the probe's column, as a table
    assert "Findings of mine" in page


@pytest.mark.long
def test_a_new_format_exports(house: Path, run: Path) -> None:
    title, *cases = attnbench(house, "show", str(run), "--format", "names-only").splitlines()
    assert title == "case"
    assert "halves-b1-n64-d32-h2-fp32-forward-core" in cases
    assert len(cases) == 4


@pytest.mark.nightly
@pytest.mark.parametrize(
    "tests",
    [
        ("tests/test_readme.py", "tests/scenarios", "tests/harness/scenario"),
        ("tests/harness/devices/probes/test_every_probe.py", "tests/harness/studies"),
        (
            "tests/reports/exports/test_every_format.py",
            "tests/reports/subjects",
        ),
        ("tests/impls/test_agreement.py", "tests/impls/test_canary.py", "-k", "halves"),
        ("tests/impls/discovery", "tests/impls/masks", "tests/harness/verbs/test_cli.py"),
        (
            "tests/impls/test_problem.py",
            "tests/harness/cases",
            "tests/properties/test_contrasts.py",
        ),
    ],
    ids=lambda tests: tests[0],
)
def test_the_suite_accepts_the_new_files(house: Path, tests: tuple[str, ...]) -> None:
    done = python(house, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


@pytest.mark.long
def test_no_import_of_the_new_files_runs_upward(house: Path) -> None:
    code = "from importlinter.cli import lint_imports_command as main; main()"
    command = [sys.executable, "-c", code, "--config", "../pyproject.toml", "--no-cache"]
    done = ran(command, cwd=house / ".package", env=None)
    assert "0 broken" in done.stdout, done.stdout + done.stderr
