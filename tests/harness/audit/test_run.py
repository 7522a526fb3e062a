"""An audit from the command line: real cubins if triton is installed, and one row per kernel even
if a child dies.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.audit.occupancy import ARCHITECTURES
from attnbench.harness.audit.sass import OF_CYCLES, OF_PRODUCTS
from tests.conftest import ROOT, environment, ran
from tests.made_runs import read_rows

pytestmark = pytest.mark.long

needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="needs triton: pip install triton"
)
Run = Callable[..., subprocess.CompletedProcess[str]]
CANARIES = """
import sys
from attnbench.harness.audit import pool
from attnbench.harness.cli.app import main

pool.PROGRAM = "tests.fakes.audit_child"
try:
    main()
finally:
    assert "triton" not in sys.modules, "the parent imported triton"
"""
SMALL = ("kernels", "audit", "--arch", "90", "--dtype", "bf16", "--kernel", "forward")


def with_canaries(folder: Path, **variables: str) -> list[Any]:
    """Arguments of subprocess for an audit of the kernels in tests/fakes/audit_child.py."""
    extra = {"PYTHONPATH": os.pathsep.join([str(ROOT / ".package"), str(ROOT)]), **variables}
    return [[sys.executable, "-c", CANARIES, *SMALL, "--out", str(folder)], environment(extra)]


@needs_triton
def test_every_kernel_ends_as_one_row_and_a_bad_one_fails_the_audit(tmp_path: Path) -> None:
    command, variables = with_canaries(tmp_path)
    done = ran([*command, "--json-lines"], env=variables, timeout=300)
    assert done.returncode == 1, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"begin", "running", "finished", "end"} <= {line["reason"] for line in lines}
    path = Path(lines[-1]["run"])
    planned = [one["case"] for one in json.loads((path / "run.json").read_text())["kernels"]]
    rows = {row["case"]: row for row in read_rows(path)}
    assert sorted(rows) == sorted(planned)
    assert len(read_rows(path)) == len(planned) == 4  # the fifth is listed twice, and audited once
    good, spilling, broken, dead = (rows[name] for name in planned)
    statuses = [row["status"] for row in (good, spilling, broken, dead)]
    assert statuses == ["ok", "ok", "error", "crashed"]
    names = ("thread_stack_bytes", "spill_store_bytes", "spill_load_bytes")
    assert [good[name] for name in names] == [0, 0, 0]
    assert spilling["spill_store_bytes"] > 100 < spilling["spill_load_bytes"]
    assert spilling["thread_stack_bytes"] > 100
    assert spilling["instructions"]["local"] > 50
    assert "power of 2" in broken["log_tail"]
    assert broken["reason"].startswith("CompilationError")
    assert dead["reason"] == "SIGABRT"
    assert "dying as a compiler does" in dead["log_tail"]
    for row in (broken, dead):
        assert row["thread_register_count"] is row["occupancy_ratio"] is row["instructions"] is None


@needs_triton
def test_ctrl_c_ends_it_in_order(tmp_path: Path) -> None:
    command, variables = with_canaries(tmp_path, AUDIT_CANARY="slow")
    process = subprocess.Popen(
        command,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("*-kernels-*/rows.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert {row["status"] for row in read_rows(Path(out.splitlines()[-1]))} == {"interrupted"}
    assert len(read_rows(Path(out.splitlines()[-1]))) == 4
    assert "were not reached" in out
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@needs_triton
def test_real_kernels_are_read_and_follow_the_documented_format(attnbench: Run) -> None:
    done = attnbench(
        "kernels", "audit", "--arch", "12.0", "--dtype", "fp32", "--kernel", "grad_kv", timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    path = Path(done.stdout.splitlines()[-1])
    text = (
        (ROOT / "docs" / "format.md")
        .read_text()
        .split("## Rows of kind kernel")[1]
        .split("\n## ")[0]
    )
    documented = {
        name.strip("`")
        for line in text.splitlines()
        if line.startswith("| `")
        for name in line.split("|")[1].split()
    }
    rows = read_rows(path)
    assert len(rows) > 8
    assert {row["compute_capability"] for row in rows} == {"12.0"}
    for row in rows:
        assert set(row) == documented
        assert row["status"] == "ok"
        assert row["missing"].keys() == {*OF_PRODUCTS, *OF_CYCLES}  # fp32 multiplies with FFMA
        assert not [
            name
            for name, value in row.items()
            if value is None
            and name not in row["missing"]
            and not name.endswith(("column_count", "log_tail"))
        ]
        assert 16 < row["thread_register_count"] <= 255
        assert row["block_warp_count"] == row["config"]["warps"]
        assert 0 < row["block_shared_bytes"] < ARCHITECTURES[12, 0].shared_bytes
        assert row["instructions"]["FFMA"] > 1000
        assert [row["instructions"][name] for name in ("HMMA", "HGMMA", "UTCHMMA")] == [0, 0, 0]
        assert row["instructions"]["MUFU.EX2"] > 0
        assert row["instruction_count"] == sum(row["instructions"].values())
        assert row["sm_warp_count"] == row["sm_block_count"] * row["block_warp_count"] > 0
    assert {row["rank"] for row in rows if row["d_k"] == 64} == {1, 2}
    verdict = done.stdout.splitlines()[-2]
    assert verdict.startswith(
        f"12.0 (Blackwell: RTX 50, RTX PRO 6000): ok, {len(rows)} kernels, none spills in a loop; "
    )
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines if line.startswith(("kernel ", "grad_kv "))) <= 100


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--arch", "hopper"), "--arch: 'hopper' is not a compute capability"),
        (("--dtype", "int8"), "--dtype: no 'int8'; there are: "),
        (("--kernel", "backward"), "--kernel: no 'backward'; there are: forward, grad_q, grad_kv"),
        pytest.param(
            ("--arch", "95"), "makes no code for 9.5; it does for 80, ", marks=needs_triton
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    attnbench: Run, tmp_path: Path, flags: tuple[str, ...], complaint: str
) -> None:
    done = attnbench("kernels", "audit", *flags)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert complaint in done.stderr
    assert list(tmp_path.iterdir()) == []
