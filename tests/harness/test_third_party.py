"""Packages of backends that are broken, and the example whose installed form
tests/contract/test_own_function.py measures.
"""

import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.made_runs import read_rows
from tests.search_path import searched

EXAMPLE = ROOT / "tests" / "example_backend"

SMALL = ("--batch", "1", "--seq-len", "600", "--d-model", "32", "--heads", "2", "--device", "cpu")
QUICK = ("--set", "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}")

MODULE = """
import torch

def attend(q, k, v, *, causal, scale):
    return torch.softmax(q @ k.mT * scale, -1) @ v

def leaves_out_keys(q, k, v, *, causal, scale):
    return attend(q, k[:, :, :-64], v[:, :, :-64], causal=causal, scale=scale)
"""
POINTS = {
    "other": "other:attend",
    "other_lies": "other:leaves_out_keys",
    "other_lacks": "other_lacks",
    "other_needs": "other_needs",
    "other_breaks": "other_breaks",
    "other_garbled": "other_garbled",
    "other_gone": "other:gone",
    "other_number": "other:torch.pi",
    "fused": "other:attend",
    "native": "other:attend",
    "../other": "other:attend",
}
REASONS = {
    "other": ("ok", ""),
    "other_lies": ("incorrect", "times as far from the exact result"),
    "other_lacks": (
        "unavailable",
        "needs no_such_dependency, which is not installed: pip install no_such_dependency",
    ),
    "other_needs": (
        "unavailable",
        "needs no_such_package, which is not installed: pip install no_such_package",
    ),
    "other_breaks": ("error", "ZeroDivisionError: division by zero"),
    "other_garbled": ("unavailable", "the package other 0.2 cannot be read: "),
    "other_gone": ("error", "ImportError: other has no gone"),
    "other_number": (
        "error",
        "TypeError: other_number: of type float; wanted attend(q, k, v, *, causal, scale)",
    ),
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder like pip's with a package of one backend that works and others that are broken."""
    folder = tmp_path / "site"
    info = folder / "other-0.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 0.2\n")
    points = (f"{name} = {value}" for name, value in POINTS.items())
    (info / "entry_points.txt").write_text("\n".join(["[attnbench.backends]", *points]))
    (folder / "other.py").write_text(MODULE)
    (folder / "other_lacks.py").write_text("import no_such_dependency.part\n")
    (folder / "other_needs.py").write_text("NEEDS = ('no_such_package',)\nimport no_such_package\n")
    (folder / "other_breaks.py").write_text("1 / 0\n")
    (folder / "other_garbled.py").write_text("def prepare(:\n")
    return folder


def test_the_example_declares_the_backend_that_it_has() -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    (place,) = project["entry-points"]["attnbench.backends"].values()
    assert (EXAMPLE / f"{place.replace('.', '/')}.py").exists()


@pytest.mark.long
def test_a_broken_package_is_one_row_and_our_backends_are_measured(site: Path, attnbench) -> None:
    env = {"ATTNBENCH_BACKENDS": "", "PYTHONPATH": searched(ROOT / ".package", site)}
    done = attnbench("run", "--backends", ",".join(["fused", *REASONS]), *SMALL, *QUICK, env=env)
    assert done.returncode == 1, done.stderr
    rows = {row["backend"]: row for row in read_rows(Path(done.stdout.strip()))}
    assert rows.pop("fused")["status"] == "ok"
    for name, (status, reason) in REASONS.items():
        assert rows[name]["status"] == status, rows[name]
        assert reason in rows[name]["reason"]
    assert "1 / 0" in rows["other_breaks"]["log_tail"]
