"""Doctor on scripted machines: through the real NVML binding, with the installed torch."""

import json
import sys

import pytest

from tests.conftest import environment, ran
from tests.fakes.nvml.driver import H100, UUID, FakeDriver

pytestmark = pytest.mark.long

COUNTERS = "".join(
    f"gpm_metric {number} {value}\n"
    for number, value in {1: 50, 2: 40, 3: 20, 5: 30, 7: 25, 10: 10}.items()
)
WITHOUT_CUDA = """
import torch
torch.cuda.is_available = lambda: False  # a machine with a GPU runs these tests too
torch.version.cuda = None
from attnbench.harness.doctor import facts
facts.DRIVER_FILES = ()
"""
# the driver needs 0.1 s
SHORT = "facts.OBSERVE_S = 0.12\n"
DOCTOR = """
import json, os, sys
from pathlib import Path
from attnbench.harness.verbs.app import main

sys.argv, stdout, found = ["attnbench", "doctor", "--json"], os.dup(1), {}
for name, script in json.loads(os.environ["SCRIPTS"]).items():
    Path(os.environ["FAKE_NVML"]).write_text(script)
    said = os.open(name, os.O_RDWR | os.O_CREAT)
    os.dup2(said, 1)
    try:
        main()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    found[name] = code, json.loads(Path(name).read_text())
os.dup2(stdout, 1)
print(json.dumps(found))
"""
MIG = (
    "mig 1\n"
    "mig_device MIG-33333333-b gpu_instance 1 memory_total_mib 10240 memory_used_mib 100\n"
    "process self 100 1\n"
)
SCRIPTS = {
    "idle": H100 + COUNTERS,
    "instance": H100 + COUNTERS + MIG,
    "busy": H100 + COUNTERS + "busy_percent 97\nprocess self 300\nprocess 1 4000\n",
}


def examined(library, folder, **scripts):
    """Exit code and findings of doctor under each of the driver's scripts, in one process."""
    driver = FakeDriver(library=library, script=folder / "nvml.txt")
    driver.write(H100)
    done = ran(
        [sys.executable, "-c", f"{WITHOUT_CUDA}{SHORT}\n{DOCTOR}"],
        env=environment({**driver.environment, "SCRIPTS": json.dumps(scripts)}),
        cwd=folder,
        check=True,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def machines(nvml_library, tmp_path_factory):
    return examined(nvml_library, tmp_path_factory.mktemp("machines"), **SCRIPTS)


def about(found, what, gpu="GPU-11111111"):
    return next(
        finding
        for finding in found["findings"]
        if finding["about"] == what and finding["gpu"] in (gpu, "")
    )


def test_a_gpu_that_torch_cannot_use_is_described_and_bad(machines):
    code, found = machines["idle"]
    assert code == 4
    assert about(found, "torch")["grade"] == "bad"
    assert "install" in about(found, "torch")["advice"]
    assert "12.4" in about(found, "cuda")["found"]
    assert about(found, "driver")["found"] == "550.54.15"
    (gpu,) = found["gpus"]
    expected = {
        "uuid": UUID,
        "name": "NVIDIA H100 80GB HBM3",
        "gpm": True,
        "tier": "gpm",
        "torch_uses": False,
        "sm_active_ratio": 0.4,
        "kernel_busy_ratio": 0.0,
        "power_w": 70.0,
        "sm_clock_mhz": 1980,
        "temperature_limit_c": 87,
        "ecc_enabled": True,
        "memory_total_bytes": 81559 << 20,
        "mig_enabled": False,
        "compute_mode": "default",
    }
    assert {name: gpu[name] for name in expected} == expected
    assert 900 < gpu["energy_j"] < 90_000  # it grows while the test runs
    assert all(
        value is not None or name in gpu["reasons"]
        for name, value in gpu.items()
        if name != "instance_of"
    )


def test_an_old_driver_costs_counters_and_nothing_else(old_nvml_library, tmp_path):
    _, found = examined(old_nvml_library, tmp_path, idle=H100)["idle"]
    (gpu,) = found["gpus"]
    assert (gpu["gpm"], gpu["tier"], gpu["sm_active_ratio"]) == (False, "busy", None)
    assert gpu["temperature_c"] == 31
    assert "too old" in gpu["reasons"]["sm_active_ratio"]
    assert "newer driver" in about(found, "utilization")["advice"]
    assert about(found, "throttling")["grade"] == "ok"


def test_an_instance_is_an_entry_of_its_own_without_busy_time(machines):
    _, found = machines["instance"]
    whole, part = found["gpus"]
    assert (whole["instance_of"], part["instance_of"]) == (None, UUID)
    assert part["memory_total_bytes"] == 10240 << 20
    assert (part["tier"], part["kernel_busy_ratio"]) == ("gpm", None)
    assert "instance" in part["reasons"]["kernel_busy_ratio"]
    assert part["temperature_c"] == 31
    assert "instance" in about(found, "mig", "MIG-33333333")["found"]


def test_another_busy_process_is_bad_and_named(machines):
    _, found = machines["busy"]
    other = about(found, "other processes")
    assert other["grade"] == "bad"
    assert "process 1" in other["found"]
    assert "97 %" in other["found"]
    assert [process["ours"] for process in found["gpus"][0]["processes"]] == [False, True]
