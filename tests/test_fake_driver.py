"""The fake NVIDIA driver (tests/fakes/nvml) through the real nvidia-ml-py."""

import json
import signal
import sys
import textwrap
import time
from itertools import pairwise

import pytest

from tests.conftest import environment, ran
from tests.fakes.nvml.driver import H100, UUID

# `n` is pynvml; `error` names the error of a call; `say` passes a value to the test.
UNSTARTED = """
import json, os, sys, time
from pathlib import Path
import pynvml as n

def say(value):
    print(json.dumps(value))

def error(call, *arguments):
    try:
        call(*arguments)
    except n.NVMLError as raised:
        return type(raised).__name__.removeprefix("NVMLError_")

def rewrite(text):
    new = Path("new.txt")
    new.write_text(text)
    new.replace(os.environ["FAKE_NVML"])
"""
# The same with pynvml started; `h` is the first device.
STARTED = f"""{UNSTARTED}
n.nvmlInit()
h = n.nvmlDeviceGetHandleByIndex(0) if n.nvmlDeviceGetCount() else None
"""


def child(fake, code, preamble=STARTED):
    return ran(
        [sys.executable, "-c", preamble + textwrap.dedent(code)],
        env=environment(fake.environment),
        cwd=fake.script.parent,
    )


def ask(fake, code, preamble=STARTED):
    """What `code` says in a new process."""
    done = child(fake, code, preamble)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


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
    assert ask(fake_nvml, f"say([{', '.join(NUMBERS)}])") == list(NUMBERS.values())


@pytest.mark.long
def test_numbers_that_the_script_lacks_are_not_supported(fake_nvml):
    fake_nvml.write("gpu GPU-a\n")
    calls = [
        *NUMBERS,
        "n.nvmlDeviceGetTotalEnergyConsumption(h)",
        "n.nvmlDeviceGetSamples(h, 1, 0)",
        "n.nvmlDeviceGetMemoryInfo(h)",
        "n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2)",
        "n.nvmlGpmSampleGet(h, n.nvmlGpmSampleAlloc())",
    ]
    answers = ask(fake_nvml, f"say([{', '.join(f'error(lambda: {call})' for call in calls)}])")
    assert dict(zip(calls, answers, strict=True)) == dict.fromkeys(calls, "NotSupported")


@pytest.mark.long
def test_the_energy_counter_grows_with_time_at_the_power_in_steps(fake_nvml):
    fake_nvml.write(H100 + "power_w 500\nenergy_base_mj 123456789\nenergy_step_ms 100\n")
    written_s = time.time()
    code = """
    readings, ends = [], time.monotonic() + 60
    while len(set(readings)) < 4 and time.monotonic() < ends:
        readings.append(n.nvmlDeviceGetTotalEnergyConsumption(h))
        time.sleep(0.005)
    say(readings)
    """
    readings = ask(fake_nvml, code)
    spent_mj = (time.time() - written_s + 0.02) * 500_000
    steps = [later - earlier for earlier, later in pairwise(readings) if later != earlier]
    assert len(steps) == 3
    assert all(step % 50_000 in (0, 1, 49_999) for step in steps)  # 500 W for 100 ms; whole mJ
    assert 0 <= readings[0] - 123_456_789 <= readings[-1] - 123_456_789 <= spent_mj


SAMPLES = """
before = time.time()
kind, samples = n.nvmlDeviceGetSamples(h, {kind}, {last_seen})
say([kind, [(s.timeStamp, s.sampleValue.uiVal) for s in samples], before * 1e6])
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "value"),
    [("n.NVML_GPU_UTILIZATION_SAMPLES", 97), ("n.NVML_MEMORY_UTILIZATION_SAMPLES", 40)],
)
def test_the_ring_gives_a_sample_per_period(fake_nvml, kind, value):
    fake_nvml.write(H100 + "busy_percent 97\nmemory_busy_percent 40\n")
    value_type, samples, before_us = ask(fake_nvml, SAMPLES.format(kind=kind, last_seen=0))
    times = [stamp for stamp, _ in samples]
    assert value_type == 1
    assert {read for _, read in samples} == {value}
    assert [later - earlier for earlier, later in pairwise(times)] == [167_000] * 119
    assert before_us - 167_000 <= times[-1] <= before_us + 1e6


GPM = """
def sample(device=h):
    return n.nvmlGpmSampleGet(device, n.nvmlGpmSampleAlloc())

def metrics(one, two, *ids):
    request = n.c_nvmlGpmMetricsGet_t()
    request.version, request.numMetrics = n.NVML_GPM_METRICS_GET_VERSION, len(ids)
    request.sample1, request.sample2 = one, two
    for place, id in enumerate(ids):
        request.metrics[place].metricId = id
    got = n.nvmlGpmMetricsGet(request)
    return [(m.metricId, m.nvmlReturn, m.value if m.value == m.value else "nan")
            for m in got.metrics[:len(ids)]]
"""


@pytest.mark.long
def test_hardware_counters_come_from_two_samples(fake_nvml):
    fake_nvml.write(
        H100 + "gpm_metric 2 10\ngpm_metric 2 87.5\ngpm_metric 5 nan\ngpm_metric 10 3\n"
    )
    code = """
    supported = n.nvmlGpmQueryDeviceSupport(h).isSupportedDevice
    one = sample()
    time.sleep(0.11)
    two = sample()
    got = metrics(one, two, 2, 3, 5, 10)
    n.nvmlGpmSampleFree(one), n.nvmlGpmSampleFree(two)
    say([supported, got])
    """
    assert ask(fake_nvml, code, STARTED + GPM) == [
        1,
        [[2, 0, 87.5], [3, 3, 0.0], [5, 0, "nan"], [10, 0, 3.0]],
    ]


ERRORS = {
    "NOT_SUPPORTED": "NotSupported",
    "NO_PERMISSION": "NoPermission",
    "FUNCTION_NOT_FOUND": "FunctionNotFound",
    "GPU_IS_LOST": "GpuIsLost",
    "UNKNOWN": "Unknown",
    "DRIVER_NOT_LOADED": "DriverNotLoaded",
    "ARGUMENT_VERSION_MISMATCH": "ArgumentVersionMismatch",
}


@pytest.mark.long
def test_a_function_is_refused_with_each_error(fake_nvml):
    scripts = [f"{H100}refuse nvmlDeviceGetPowerUsage {name}\n" for name in ERRORS]
    code = f"""
    answers = []
    for script in {scripts!r}:
        rewrite(script)
        answers.append([error(n.nvmlDeviceGetPowerUsage, h), error(n.nvmlDeviceGetName, h)])
    say(answers)
    """
    assert ask(fake_nvml, code) == [[raised, None] for raised in ERRORS.values()]


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
