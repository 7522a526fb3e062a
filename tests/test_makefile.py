"""Makefile: what it takes from its user, and where it lets Python look for packages."""

import os
from collections.abc import Callable

import pytest

from tests.conftest import ROOT, ran


@pytest.fixture
def make() -> Callable[..., str]:
    """What make would run."""

    def commands(*words: str, **variables: str) -> str:
        # as a user calls it, also where the tests themselves were started by make
        ours = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
        return ran(
            ["make", "--dry-run", "--always-make", *words],
            cwd=ROOT,
            env={**ours, **variables},
            check=True,
        ).stdout

    return commands


@pytest.mark.long
def test_make_keeps_the_users_path_behind_the_checkouts(make: Callable[..., str]) -> None:
    assert f'PYTHONPATH="{ROOT}/.package:/a:/b" ' in make("faults", PYTHONPATH="/a:/b")
    assert f'PYTHONPATH="{ROOT}/.package" ' in make("gate", PYTHONPATH="")
    for line in (ROOT / "Makefile").read_text().splitlines():
        assert "PYTHONPATH=.package" not in line


@pytest.mark.long
def test_make_takes_where_results_go_from_its_command_line_only(make: Callable[..., str]) -> None:
    assert "--runs results\n" in make("report", OUT="/elsewhere")
    assert "--runs elsewhere\n" in make("report", "OUT=elsewhere")
    first = make("gpu", "PYTHON=py", "ARCHIVE=/a/b.tar.gz", "ARGS=--dry-run", OUT="/x")
    assert first == ('py -m tests.gpu_day --out "results/gpu" --archive "/a/b.tar.gz" --dry-run\n')
    assert "--archive" not in make("gpu")


@pytest.mark.long
def test_make_installs_the_lock_only_where_it_is_asked_for(make: Callable[..., str]) -> None:
    plain = make(".venv/.installed")
    assert "-c constraints.txt -e .\n" in plain
    assert "-c constraints.txt --group dev" in plain
    assert "uv" not in plain
    assert "--require-hashes" not in plain
    with_torch = make(".venv/.installed", "TORCH_BACKEND=cpu")
    assert "--torch-backend cpu -c constraints.txt torch\n" in with_torch
    locked = make(".venv/.installed", "LOCK=.ci/locked.txt")
    assert "--require-hashes -r .ci/locked.txt" in locked
    assert "constraints.txt" not in make(".venv/.installed", "CONSTRAINTS=")
