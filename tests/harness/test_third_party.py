"""Third-party backends from `pip install` to the report: an example and broken packages."""

import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, environment, ran
from tests.made_runs import read_rows
from tests.search_path import searched

pytestmark = pytest.mark.long

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


@pytest.fixture(scope="module")
def fresh_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment with the example package, and this one's packages."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(ran(command, check=True, env=None).stdout.strip())
    paths = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (site / "here.pth").write_text("\n".join(paths))
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    offline = ["--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, *offline, EXAMPLE], check=True, cwd=folder)
    return python


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


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`attnbench ARGS...` with an interpreter and without the fake backends."""

    def run(
        python: Path | str, *args: object, also: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        paths = [ROOT / ".package", *([also] if also else [])]
        env = {**environment(), "ATTNBENCH_BACKENDS": "", "PYTHONPATH": searched(*paths)}
        command = [python, "-m", "attnbench", *map(str, args)]
        return ran(command, cwd=tmp_path, env=env)

    return run


def rows_of(tmp_path: Path, done: subprocess.CompletedProcess[str]) -> dict[str, dict]:
    return {row["backend"]: row for row in read_rows(tmp_path / done.stdout.strip())}


def test_an_installed_backend_is_listed_measured_checked_and_reported(fresh_python, run, tmp_path):
    listed = run(fresh_python, "list", "backends", "--device", "cpu")
    assert listed.returncode == 0, listed.stderr
    lines = {line.split()[0].rstrip(","): line for line in listed.stdout.splitlines() if line}
    assert {"chunked", "fused"} <= set(lines)
    assert {":64", ":512"} <= set(lines["chunked"].replace(",", " ").split())
    package = "from the package attnbench-example 0.1, which is imported in workers only"
    assert package in lines["chunked"]

    layer = ("--passes", "forward+backward", "--scope", "layer", "--causal")
    flags = (*layer, "--set", "grid.kv_heads=[2, 1]", *SMALL, *QUICK)
    done = run(fresh_python, "run", "--backends", "fused,chunked,chunked:64", *flags)
    assert done.returncode == 0, done.stderr
    rows = read_rows(tmp_path / done.stdout.strip())
    assert {(row["backend"], row["kv_heads"]): row["status"] for row in rows} == {
        ("fused", 2): "ok",
        ("chunked", 2): "ok",
        ("chunked:64", 2): "ok",
        ("fused", 1): "ok",
        ("chunked", 1): "unsupported",
        ("chunked:64", 1): "unsupported",
    }
    chunked = {row["backend"]: row for row in rows if row["kv_heads"] == 2}["chunked:64"]
    assert chunked["kernel_requested"] is None
    assert 0 < chunked["error_ratio"] <= 2
    assert chunked["block_ms"]
    assert chunked["peak_bytes"] > 0
    assert {row["reason"] for row in rows} == {"", "grouped heads are not implemented"}

    page = run(fresh_python, "show", done.stdout.strip(), "--format", "html")
    assert page.returncode == 0, page.stderr
    assert "chunked:64" in (tmp_path / page.stdout.strip()).read_text()


def test_a_broken_package_is_one_row_and_our_backends_are_measured(run, site, tmp_path):
    backends = ",".join(["fused", *REASONS])
    arguments = ("run", "--backends", backends, *SMALL, *QUICK)
    done = run(sys.executable, *arguments, also=site)
    assert done.returncode == 1, done.stderr
    rows = rows_of(tmp_path, done)
    assert rows.pop("fused")["status"] == "ok"
    for name, (status, reason) in REASONS.items():
        assert rows[name]["status"] == status, rows[name]
        assert reason in rows[name]["reason"]
    assert "1 / 0" in rows["other_breaks"]["log_tail"]
