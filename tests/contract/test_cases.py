"""What people met in public threads: the right value of each; inputs in tests/data/cases."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import ran
from tests.contract.conftest import Attnbench, only_run, rows, users_environment
from tests.fakes.nvml.driver import H100, FakeDriver

DATA = Path(__file__).parents[1] / "data" / "cases"
RTX_4090 = H100.replace("81559", "24564").replace("H100 80GB HBM3", "GeForce RTX 4090")
GB10 = """
gpu GPU-11111111-2222-3333-4444-555555555555
name NVIDIA GB10
memory_total_mib unsupported
memory_used_mib unsupported
"""
ON_A_GPU = """
import sys
import torch
from attnbench.harness.devices import environment, this_device

this_device.version = lambda _: "2.13.0+cu130"  # of a torch that can use the GPU
torch.cuda.mem_get_info = lambda device=None: (2 << 30, 120 << 30)
if sys.argv[1:] == ["free"]:
    print(environment.available_bytes(torch.device("cuda")))
    sys.exit()
from attnbench.__main__ import main

sys.exit(main())
"""


def on_a_gpu(driver: FakeDriver, script: str, *args: str) -> subprocess.CompletedProcess[str]:
    """`attnbench ARGS` where the driver lists the GPU of this script."""
    driver.write(script)
    environment = users_environment(driver.environment)
    return ran([sys.executable, "-c", ON_A_GPU, *args], env=environment)


def test_the_first_line_on_a_gpu_is_about_what_runs_there(fake_nvml: FakeDriver) -> None:
    """24 564 MiB less 16.06 GB of weights, over 131 072 B of keys and values a token, and of one
    layer q, output and log-sum-exp: 16 512 B, with its k and v 20 608 B.
    """
    config = str(DATA / "llama-3.1-8b.json")
    said = on_a_gpu(fake_nvml, RTX_4090, "advise", config, "--context", "32k").stdout
    first = said.splitlines()[0]
    tokens = re.search(r"fits (at least )?([\d\s]+) tokens of prefill in 24 GiB with sdpa", first)
    assert tokens, first
    left = 24564 * 2**20 - 16_060_522_496
    assert left // (131_072 + 20_608) <= int("".join(tokens[2].split())) <= left // 147_584
    asked = [line for line in said.splitlines() if re.match(r"prefill\s32", line)]
    assert asked[0].endswith("yes"), asked


def test_a_gpu_that_shares_the_hosts_memory_has_what_the_host_has(fake_nvml: FakeDriver) -> None:
    said = on_a_gpu(fake_nvml, GB10, "advise", "llama-3-8b", "--context", "8k").stdout
    assert "memory: the host's memory, which the GPU shares" in said
    assert "is not known" not in said.splitlines()[0]
    meminfo = Path("/proc/meminfo").read_text()
    available = int(re.search(r"MemAvailable: +(\d+)", meminfo)[1]) * 1024  # type: ignore[index]
    free = int(on_a_gpu(fake_nvml, GB10, "free").stdout)
    assert 0 < free <= 1.2 * available
    assert free != 2 << 30  # what CUDA calls free leaves out the page cache


def test_nan_where_a_query_sees_no_key_is_wrong(attnbench: Attnbench) -> None:
    backends = {"ATTNBENCH_BACKENDS": str(DATA / "backends")}
    attnbench("run", DATA / "nan.yaml", "--runs", "runs", env=backends)
    found = {row["backend"]: row for row in rows(only_run(Path("runs")))}
    assert found["nanrows"]["status"] == "incorrect"
    assert found["nanrows"]["reason"] == "the output has NaN or infinity"
    assert not found["nanrows"].get("latency_ms")
    assert found["sdpa"]["status"] == "ok"


def test_a_plain_function_is_asked_decode_and_its_wrong_corner_is_found(
    attnbench: Attnbench,
) -> None:
    shutil.copy(DATA / "asked.py", "asked.py")
    attnbench("run", DATA / "align.yaml", "--allow-import", "--runs", "runs")
    run = only_run(Path("runs"))
    found = {row["seq_len"]: row for row in rows(run) if row["backend"] == "attend@asked"}
    assert found[1]["status"] == "ok"
    assert found[4]["status"] == "incorrect"
    reason = found[4]["reason"]
    assert "it is right for causal_align top_left, where bottom_right was asked" in reason
    typed = attnbench("compare", run, "--against", "asked:attend")
    assert (typed.returncode, "attend@asked" in typed.stdout) == (0, True)
