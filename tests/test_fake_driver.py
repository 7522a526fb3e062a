"""The fake NVIDIA driver (tests/fakes/nvml) through the real nvidia-ml-py."""

import json
import signal
import sys

import pytest

from tests.conftest import environment, ran
from tests.fakes.nvml.driver import H100, UUID

# `n` is pynvml; `h` is the first device; `say` passes a value to the test.
STARTED = """
import json
import pynvml as n

def say(value):
    print(json.dumps(value))

n.nvmlInit()
h = n.nvmlDeviceGetHandleByIndex(0) if n.nvmlDeviceGetCount() else None
"""


def child(fake, code):
    return ran(
        [sys.executable, "-c", STARTED + code],
        env=environment(fake.environment),
        cwd=fake.script.parent,
    )


NUMBERS = {
    "n.nvmlDeviceGetPowerUsage(h)": 70_000,
    "n.nvmlDeviceGetEnforcedPowerLimit(h)": 700_000,
    "n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_GRAPHICS)": 1755,
    "n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM)": 1755,
    "n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM)": 2619,
    "n.nvmlDeviceGetMaxClockInfo(h, n.NVML_CLOCK_SM)": 1980,
    "n.nvmlDeviceGetMaxClockInfo(h, n.NVML_CLOCK_MEM)": 2620,
    "n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU)": 31,
    "n.nvmlDeviceGetTemperatureV(h, n.NVML_TEMPERATURE_GPU)": 31,
    "n.nvmlDeviceGetTemperatureThreshold(h, n.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)": 87,
    "n.nvmlDeviceGetCurrentClocksEventReasons(h)": 0x24,
    "n.nvmlDeviceGetCurrentClocksThrottleReasons(h)": 0x24,
    "n.nvmlDeviceGetPersistenceMode(h)": 1,
    "n.nvmlDeviceGetEccMode(h)": [1, 1],
    "n.nvmlDeviceGetTotalEccErrors(h, n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, 0)": 7,
    "n.nvmlDeviceGetComputeMode(h)": 3,
    "n.nvmlDeviceGetMigMode(h)": [0, 0],
    "n.nvmlDeviceGetCurrPcieLinkGeneration(h)": 4,
    "n.nvmlDeviceGetCurrPcieLinkWidth(h)": 8,
    "[n.nvmlDeviceGetUtilizationRates(h).gpu, n.nvmlDeviceGetUtilizationRates(h).memory]": [97, 40],
}
CHANGES = """
sm_clock_mhz 1755
max_memory_clock_mhz 2620
event_reasons 0x24
ecc_errors 7
compute_mode 3
busy_percent 97
memory_busy_percent 40
pcie_generation 4
pcie_width 8
"""


def test_every_number_of_the_script_is_answered(fake_nvml):
    fake_nvml.write(H100 + CHANGES)
    done = child(fake_nvml, f"say([{', '.join(NUMBERS)}])")
    assert not done.returncode, done.stderr
    assert json.loads(done.stdout) == list(NUMBERS.values())


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("powre_w 3", "'powre_w' is not a key"),
        ("power_w", "a value is missing"),
        ("power_w much", "'much' is not a number"),
        ("refuse nvmlDeviceGetNmae UNKNOWN", "there is no function 'nvmlDeviceGetNmae'"),
        ("refuse nvmlDeviceGetName LOST", "there is no error 'LOST'"),
        ("mig_device MIG-a memory_total_mib 3", "a mig_device needs gpu_instance"),
        (f"gpu {UUID}", f"there are two devices '{UUID}'"),
    ],
)
def test_an_invalid_script_ends_the_process(fake_nvml, line, message):
    fake_nvml.write(f"{H100}{line}\n")
    done = child(fake_nvml, "say(0)")
    assert done.returncode == -signal.SIGABRT
    assert (
        done.stderr == f"fake driver: {fake_nvml.script}:{len(H100.splitlines()) + 1}: {message}\n"
    )
