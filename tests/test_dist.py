"""What `make dist` refuses, and that what CI, releases and a GPU's machine install is known."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hatchling.metadata.core import CoreMetadata, ProjectMetadata
from hatchling.plugin.manager import PluginManager
from packaging.requirements import Requirement
from packaging.version import Version

import attnbench
from tests.conftest import ROOT

LOCKED = (ROOT / ".ci" / "locked.txt").read_text()


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


dist, floors, wheels = program("dist"), program("floors"), program("wheels")
COMMIT = [
    "README.md",
    ".package/attnbench/__init__.py",
    ".package/attnbench/harness",
    "harness/a.py",
]


def test_the_files_of_a_commit_have_their_places_in_the_wheel() -> None:
    linked = [  # a link and what it leads to
        "harness/rows/published",
        "results/published/a/run.json",
    ]
    commit = [*COMMIT, *linked, "tests/test_a.py", "docs/a.md", ".env"]
    assert dist.package_names(commit) == {
        "attnbench/__init__.py",
        "attnbench/harness/a.py",
        "attnbench/harness/rows/published/a/run.json",
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["attnbench/.env"], "holds what the commit does not have there: attnbench/.env"),
        (["attnbench/harness/a.py"], "holds files twice: attnbench/harness/a.py"),
        (None, "lacks files of the commit; see include in pyproject.toml: attnbench/harness/a.py"),
    ],
)
def test_a_file_too_many_missing_or_twice_is_refused(change: list[str] | None, said: str) -> None:
    wanted = dist.wanted_in_wheel(COMMIT, "1.0")
    found = sorted(wanted) + change if change else sorted(wanted - {"attnbench/harness/a.py"})
    with pytest.raises(dist.Failed) as caught:
        dist.check_names(found, wanted, "a.whl")
    assert str(caught.value) == f"a.whl: {said}"
    dist.check_names(sorted(wanted), wanted, "a.whl")


@pytest.mark.parametrize(
    ("tag", "changelog", "said"),
    [
        ("v1.1", "## 1.0 - 2026-01-01", "tag v1.1, but this is version 1.0; wanted v1.0"),
        ("v1.0", "## Unreleased", "CHANGELOG.md: has no notes on version 1.0"),
        ("$(touch pwned)", "", "tag $(touch pwned), but this is version 1.0"),
    ],
)
def test_a_tag_is_its_version_with_notes(tag: str, changelog: str, said: str) -> None:
    with pytest.raises(dist.Failed) as caught:
        dist.notes_of("1.0", tag, changelog)
    assert str(caught.value).startswith(said)


def test_the_notes_of_a_release_are_its_part_of_the_changelog(monkeypatch):
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://git.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "some/fork")
    monkeypatch.setenv("GITHUB_SHA", "f00d")
    changelog = (
        "# Changelog\n\n## Unreleased\n\n- new\n\n## 1.0 - 2026-01-01\n\n- [a](b.md#c)\n\n"
        "### Fixed\n\n- d\n\n## 0.9 - 2025-01-01\n\n- old\n"
    )
    assert dist.notes_of("1.0", "v1.0", changelog) == (
        "- [a](https://git.example/some/fork/blob/f00d/b.md#c)\n\n### Fixed\n\n- d\n"
    )
    oldest = changelog.replace("1.0", "1.1").replace("0.9", "1.0")
    assert dist.notes_of("1.0", "v1.0", oldest) == "- old\n"


@pytest.mark.parametrize(
    ("rows", "page", "said"),
    [
        ([], "<!DOCTYPE html>", "no rows"),
        ([{"status": "ok"}, {"status": "crashed"}], "<!DOCTYPE html>", "crashed, ok"),
        ([{"status": "oom"}], "<!DOCTYPE html>", "oom"),
        ([{"status": "ok"}], "", "wrote no page"),
    ],
)
def test_a_run_that_failed_is_no_release(
    rows: list[dict[str, Any]], page: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "report.html").write_text(page)
    with pytest.raises(dist.Failed, match=said):
        dist.check_run(tmp_path, "a.whl")


@pytest.mark.nightly
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the repository")
def test_the_last_commit_builds_what_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of `make dist` but the two installations, and the list of what they brought."""
    used: list[str] = []
    monkeypatch.setattr(dist, "use", lambda file, *_: used.append(file.suffix))
    monkeypatch.setattr(dist, "list_parts", lambda *_: None)
    made = dist.distribute(tmp_path, "")
    assert used == [".whl", ".gz"]
    assert len(list(made.iterdir())) == 2


def test_a_release_names_the_repository_that_it_is_built_in(monkeypatch):
    """In its URLs, and in README's links and pictures: relative ones lead nowhere at an index."""

    def core() -> CoreMetadata:
        return ProjectMetadata(str(ROOT), PluginManager()).core

    monkeypatch.setenv("GITHUB_SERVER_URL", "https://git.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "some/fork")
    monkeypatch.setenv("GITHUB_SHA", "f00d")
    home = "https://git.example/some/fork"
    named = core()
    assert named.urls["Source"] == home
    assert f"[terms]({home}/blob/f00d/docs/reading.md#terms)" in named.readme
    assert f"]({home}/raw/f00d/docs/wall.png)" in named.readme
    monkeypatch.delenv("GITHUB_REPOSITORY")
    nameless = core()
    assert nameless.urls == {}
    assert "then the terms." in nameless.readme
    assert "docs/wall.png" not in nameless.readme
    for one in (named, nameless):
        assert one.readme_content_type == "text/markdown"
        assert not re.search(r"\]\((?!https://)", one.readme)


def test_the_citation_is_of_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    found = re.search(r"^version: (.*)\ndate-released: \"(.*)\"$", text, re.M)
    assert f"## {found[1]} - {found[2]}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert found[1] == attnbench.__version__


# ---- versions ------------------------------------------------------------------------------------


def requirements() -> list[Requirement]:
    file = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, groups = file["project"], file["dependency-groups"].values()
    every = (project["dependencies"], *project["optional-dependencies"].values(), *groups)
    return [Requirement(text) for group in every for text in group]


def locked() -> dict[str, list[str]]:
    """Each package that CI installs, and its versions: more than one if Pythons differ."""
    found: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==(\S+)", LOCKED, re.MULTILINE):
        found.setdefault(name, []).append(version)
    return found


def test_ci_installs_what_was_tested_here_and_all_that_is_wanted() -> None:
    versions = locked()
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if "==" in line:
            name, version = line.split("==")
            name = re.sub(r"[._]", "-", name.lower())
            assert versions.get(name, [version]) == [version], f"{name}: run `make lock`"
    for requirement in requirements():
        found = versions[re.sub(r"[._]", "-", requirement.name.lower())]
        assert all(requirement.specifier.contains(one) for one in found), requirement


def test_lowest_versions_are_those_that_pyproject_allows() -> None:
    found = dict(line.split("==") for line in floors.floors("parquet", "hf", "pytest"))
    for requirement in requirements():
        (only,) = requirement.specifier
        assert only.operator == ">=", f"{requirement}: a limit from above breaks users"
        if requirement.name in found and not requirement.marker:
            assert Version(found[requirement.name]) == Version(only.version)
    assert Version(found["typer"]) >= Version("0.15.4")  # before, it fails with click 8.2
