"""The recipes of docs/extending.md: one file of each kind, added to a copy of the tree, is enough.

Each is used as a user would: from the command line to the page. Then the tests that take up every
file of a folder run in that copy. CONTRIBUTING.md's table and its map say what is so.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT, ran
from tests.made_runs import read_rows
from tests.search_path import searched

FOLDERS = (".package", "harness", "impls", "reports", "scenarios", "tests", "docs")
FILES = (
    *("Makefile", "pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
    *("CODE_OF_CONDUCT.md", "SECURITY.md", "CITATION.cff"),
)
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
LINES = {
    "impls/problem_fields.py": "    softcap: float = 0.0\n",
    "harness/rows/fields.py": "    kernel_requested: str | None = None\n",
    "harness/worker/check.py": '            "first_call_ms": first_call_ms,\n',
    "reports/claims/ledger.py": '    Claim(\n        "C1",\n',
}
"""Files of which a block is added, each with the line that it is added before."""
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


def blocks() -> dict[str, str]:
    """The indented blocks that begin with a file's name."""
    found = re.findall(r"^    # (\w+/\S+)\n((?:(?: {4}.*)?\n)+)", RECIPES, re.M)
    return {name: textwrap.dedent(block).rstrip("\n") + "\n" for name, block in found}


SHOWN = blocks()
ADDED = SHOWN.keys() - LINES.keys()


def test_the_table_of_ways_has_every_file_and_its_lines() -> None:
    ways = re.findall(
        r"^\| an? .*?\| `(\S+)` \| (\d+) \|.*\| `(?:make )?(\S+)` \|$", CONTRIBUTING, re.M
    )
    lines = {name: sum(map(bool, block.splitlines())) for name, block in SHOWN.items()}
    also = {"impls/problem_fields.py", "harness/worker/check.py"}
    assert {name: int(count) for name, count, _ in ways} == {
        name: count for name, count in lines.items() if name not in also
    }
    assert all(f"`{name}`" in CONTRIBUTING for name in also)
    assert all((ROOT / test).exists() for _, _, test in ways if "/" in test)


def test_pages_for_developers_are_short() -> None:
    docs = ROOT / "docs"
    decisions = [path.stat().st_size for path in (docs / "decisions").glob("*.md")]
    others = [(docs / f"{name}.md").stat().st_size for name in ("extending", "release")]
    assert len(CONTRIBUTING.encode()) <= 10_000
    assert max(decisions) <= 2_000
    assert sum(decisions + others) <= 30_000


@pytest.mark.parametrize("folder", ["harness", "impls", "reports"])
def test_the_map_has_the_layers_that_import_linter_checks(folder: str) -> None:
    drawing = re.search(rf"^    {folder}\n((?: {{8}}.*\n)+)", CONTRIBUTING, re.M)
    assert drawing is not None
    rooms = [re.split(r" {2,}", line.strip())[0] for line in drawing[1].splitlines()]
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (
        one["layers"]
        for one in rules["contracts"]
        if one.get("containers") == [f"attnbench.{folder}"]
    )
    drawn = [set(re.findall(r"\w+", line)) for line in rooms]
    assert [one for one in drawn if one] == [set(re.findall(r"\w+", line)) for line in layers]


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
    for name in ADDED:
        assert not (house / name).exists()
        (house / name).write_text(SHOWN[name])
    for name, before in LINES.items():
        indent = before[: -len(before.lstrip())]
        add(house / name, textwrap.indent(SHOWN[name], indent), before)
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
    environment.pop("ATTNBENCH_BACKENDS", None)
    environment |= more
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
@pytest.mark.parametrize(
    ("what", "name"), [("backends", "halves"), ("probes", "wait_count"), ("models", "tiny")]
)
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
    assert changed == {*SHOWN, README[0], *BY_COMMAND}
    assert all(name in RECIPES for name in (README[0], *BY_COMMAND))


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


@pytest.mark.long
def test_advice_knows_a_new_model(house: Path) -> None:
    advice = attnbench(house, "advise", "tiny", "--device", "cpu", "--memory-gib", "1")
    assert "tiny" in advice
    assert "128" in advice  # its longest context


@pytest.mark.long
def test_a_new_claim_is_judged(house: Path, tmp_path: Path) -> None:
    scenario = {
        "name": "claims_mine",
        "question": "?",
        "takes_min": 1,
        "backends": ["fused"],
        "grid": {"batch": 1, "seq_len": [32, 64, 128, 256], "d_model": 32, "heads": 2},
        "plan": {"like": "quick", "budget_s": 0.1},
    }
    (tmp_path / "claims_mine.yaml").write_text(json.dumps(scenario))
    run = attnbench(house, "run", str(tmp_path / "claims_mine.yaml"), "--device", "cpu").strip()
    told = attnbench(house, "show", run, "--format", "md")
    assert re.search(r"C0\W+supported\W+Twice the tokens need four times the FLOPs", told)


@pytest.mark.long
def test_a_new_cheat_ends_as_it_says(house: Path) -> None:
    sizes = ("--seq-len", "256", "--d-model", "64", "--heads", "2", "--plan", "quick")
    words = ("-m", "attnbench", "run", "--backends", "doubles_its_values", *sizes)
    done = python(house, *words, "--device", "cpu", ATTNBENCH_BACKENDS="tests/fakes/cheats")
    (row,) = (row for row in read_rows(house / done.stdout.strip()) if row["kind"] == "latency")
    assert row["status"] == "incorrect"
    assert "times as far" in row["reason"]


@pytest.mark.long
def test_a_new_attack_is_tried(house: Path) -> None:
    done = python(house, "-m", "tests.faults", "--short", "--only", "two_dry_runs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| two dry runs at once | 1 | 1 |" in done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize(
    "tests",
    [
        ("tests/test_readme.py", "tests/scenarios", "tests/harness/scenario"),
        ("tests/harness/devices/probes/test_every_probe.py", "tests/harness/studies"),
        ("tests/harness/models",),
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
