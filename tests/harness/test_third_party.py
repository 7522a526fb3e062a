"""Backends of others, from `pip install` to the report: an example package, and packages that are
broken in every way.
"""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, environment

pytestmark = pytest.mark.long

EXAMPLE = ROOT / "tests" / "example_backend"
SMALL = ("--batch", "1", "--seq-len", "600", "--d-model", "32", "--heads", "2", "--device", "cpu")
QUICK = ("--set", "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}")

STRANGER = """
import torch

def attend(q, k, v, *, causal, scale):
    return torch.softmax(q @ k.mT * scale, -1) @ v

def leaves_out_keys(q, k, v, *, causal, scale):
    return attend(q, k[:, :, :-64], v[:, :, :-64], causal=causal, scale=scale)
"""
POINTS = {
    "stranger": "stranger:attend",
    "stranger_lies": "stranger:leaves_out_keys",
    "stranger_lacks": "stranger_lacks",
    "stranger_needs": "stranger_needs",
    "stranger_breaks": "stranger_breaks",
    "stranger_garbled": "stranger_garbled",
    "stranger_gone": "stranger:gone",
    "stranger_number": "stranger:torch.pi",
    "fused": "stranger:attend",
    "native": "stranger:attend",
    "../stranger": "stranger:attend",
}
REASONS = {
    "stranger": ("ok", ""),
    "stranger_lies": ("incorrect", "times as far from the exact result"),
    "stranger_lacks": (
        "unavailable",
        "needs no_such_dependency, which is not installed: pip install no_such_dependency",
    ),
    "stranger_needs": (
        "unavailable",
        "needs no_such_package, which is not installed: pip install no_such_package",
    ),
    "stranger_breaks": ("error", "ZeroDivisionError: division by zero"),
    "stranger_garbled": ("unavailable", "the package stranger 0.2 cannot be read: "),
    "stranger_gone": ("error", "ImportError: stranger has no gone"),
    "stranger_number": (
        "error",
        "TypeError: stranger_number: of type float; wanted attend(q, k, v, *, causal, scale)",
    ),
}


@pytest.fixture(scope="module")
def fresh_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment that has the example package, and finds torch and the
    rest where this one does.
    """
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    (site / "here.pth").write_text(
        "\n".join(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib")))
    )
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    subprocess.run([*install, EXAMPLE], check=True, cwd=folder)
    return python


@pytest.fixture
def strangers(tmp_path: Path) -> Path:
    """A folder with the files that pip would have left of a package whose backends are broken, and
    of one that works.
    """
    site = tmp_path / "site"
    info = site / "stranger-0.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 0.2\n")
    (info / "entry_points.txt").write_text(
        "\n".join(
            ["[attnbench.backends]", *(f"{name} = {value}" for name, value in POINTS.items())]
        )
    )
    (site / "stranger.py").write_text(STRANGER)
    (site / "stranger_lacks.py").write_text("import no_such_dependency.part\n")
    (site / "stranger_needs.py").write_text(
        "NEEDS = ('no_such_package',)\nimport no_such_package\n"
    )
    (site / "stranger_breaks.py").write_text("1 / 0\n")
    (site / "stranger_garbled.py").write_text("def prepare(:\n")
    return site


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`attnbench ARGS...` by an interpreter, without the fake backends."""

    def run(
        python: Path | str, *args: object, also: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        paths = [str(ROOT / ".package"), *([str(also)] if also else [])]
        env = {**environment(), "ATTNBENCH_BACKENDS": "", "PYTHONPATH": os.pathsep.join(paths)}
        command = [python, "-m", "attnbench", *map(str, args)]
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240, check=False
        )

    return run


def rows_of(tmp_path: Path, done: subprocess.CompletedProcess[str]) -> dict[str, dict]:
    lines = (tmp_path / done.stdout.strip() / "rows.jsonl").read_text().splitlines()
    return {row["backend"]: row for row in map(json.loads, lines)}


def test_an_installed_package_s_backend_is_listed_measured_judged_and_reported(
    fresh_python, run, tmp_path
):
    listed = run(fresh_python, "list", "backends", "--device", "cpu")
    assert listed.returncode == 0, listed.stderr
    lines = {line.split()[0]: line for line in listed.stdout.splitlines() if line.split()}
    assert {"chunked", "chunked:64", "chunked:512", "fused"} <= set(lines)
    assert (
        "from the package attnbench-example 0.1, which is imported in workers only"
        in lines["chunked"]
    )

    flags = (
        "--passes",
        "forward+backward",
        "--scope",
        "layer",
        "--causal",
        "--set",
        "grid.kv_heads=[2, 1]",
        *SMALL,
        *QUICK,
    )
    done = run(fresh_python, "run", "--backends", "fused,chunked,chunked:64", *flags)
    assert done.returncode == 0, done.stderr
    rows = [
        json.loads(line)
        for line in (tmp_path / done.stdout.strip() / "rows.jsonl").read_text().splitlines()
    ]
    assert {(row["backend"], row["kv_heads"]): row["status"] for row in rows} == {
        ("fused", 2): "ok", ("chunked", 2): "ok", ("chunked:64", 2): "ok",
        ("fused", 1): "ok", ("chunked", 1): "unsupported", ("chunked:64", 1): "unsupported",
    }  # fmt: skip
    chunked = {row["backend"]: row for row in rows if row["kv_heads"] == 2}["chunked:64"]
    assert chunked["kernel_requested"] is None
    assert 0 < chunked["error_ratio"] <= 2
    assert chunked["block_ms"]
    assert chunked["peak_bytes"] > 0
    assert {row["reason"] for row in rows} == {"", "grouped heads are not implemented"}

    page = run(fresh_python, "report", done.stdout.strip())
    assert page.returncode == 0, page.stderr
    assert "chunked:64" in (tmp_path / page.stdout.strip()).read_text()


def test_a_dry_run_imports_nothing_of_others(run, strangers, tmp_path):
    (strangers / "stranger.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    done = run(
        sys.executable,
        "run",
        "--backends",
        "stranger,stranger_breaks",
        *SMALL,
        "--dry-run",
        also=strangers,
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.count("from the package stranger 0.2, which is imported in workers only") == 2
    )
    assert (
        run(sys.executable, "list", "backends", "--device", "cpu", also=strangers).returncode == 0
    )
    assert not (tmp_path / "imported").exists()


def test_broken_packages_break_no_list(run, strangers):
    done = run(sys.executable, "list", "backends", "--device", "cpu", also=strangers)
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.split()}
    assert {*REASONS, "naive", "fused", "sdpa"} <= set(lines)
    assert "yes" in lines["fused"]
    assert "needs no_such_package" in lines["stranger_needs"]
    assert "the package stranger 0.2 cannot be read" in lines["stranger_garbled"]
    assert sorted(done.stderr.splitlines()) == [
        (
            "'../stranger' of the package stranger 0.2 is left out: a name has letters, digits, and"
            " . _ - within"
        ),
        "'fused' of the package stranger 0.2 is left out: its name is taken",
        "'native' of the package stranger 0.2 is left out: its name is taken",
    ]


def test_whatever_a_package_does_is_one_row_and_ours_are_measured(run, strangers, tmp_path):
    done = run(
        sys.executable,
        "run",
        "--backends",
        ",".join(["fused", *REASONS]),
        *SMALL,
        *QUICK,
        also=strangers,
    )
    assert done.returncode == 1, done.stderr
    rows = rows_of(tmp_path, done)
    assert rows.pop("fused")["status"] == "ok"
    for name, (status, reason) in REASONS.items():
        assert rows[name]["status"] == status, rows[name]
        assert reason in rows[name]["reason"]
    assert "1 / 0" in rows["stranger_breaks"]["log_tail"]


def test_a_wall_of_a_broken_package_is_an_error_row(run, strangers, tmp_path):
    flags = ("--d-model", "16", "--heads", "1", "--memory-gib", "0.1", "--device", "cpu")
    done = run(
        sys.executable,
        "wall",
        "--backends",
        "stranger_breaks,stranger_lacks",
        *flags,
        also=strangers,
    )
    rows = rows_of(tmp_path, done)
    assert (rows["stranger_breaks"]["status"], rows["stranger_lacks"]["status"]) == (
        "error",
        "unavailable",
    ), done.stderr
    assert "ZeroDivisionError" in rows["stranger_breaks"]["reason"]
