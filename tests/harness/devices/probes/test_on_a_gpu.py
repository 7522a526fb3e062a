"""Probes of a GPU under a scripted driver: what its counters say, and why a column is missing."""

from collections import Counter

import pytest

from tests.fakes.nvml.driver import H100

MIB = 1 << 20
INSTANCE = "MIG-aaaaaaaa-2222-3333-4444-555555555555"
MIG = f"mig 1\nmig_device {INSTANCE} gpu_instance 3 memory_total_mib 10240 memory_used_mib 100\n"
COUNTERS = (
    "gpm_metric 1 99\ngpm_metric 2 87.5\ngpm_metric 3 41\ngpm_metric 5 62.25\ngpm_metric 7 60\n"
    "gpm_metric 10 33\n"
)
BUSY = "busy_percent 97\nmemory_busy_percent 40\nsample_period_ms 20\n"
CLOCKS = "sm_clock_mhz 1755\nevent_reasons 0x4\ntemperature_c 66\npower_throttle_share 0.5\n"
PROCESSES = "process self 1200\nprocess 999999 300\nprocess 999998 unknown\n"


@pytest.mark.parametrize(
    ("probe", "script", "values"),
    [
        ("busy", BUSY, {"kernel_busy_ratio": 0.97, "memory_busy_ratio": 0.4}),
        (
            "clocks",
            CLOCKS,
            {
                "sm_clock_mhz": 1755,
                "memory_clock_mhz": 2619,
                "temperature_c": 66,
                "clock_event_mask": 4,
                "sync_boost_throttled_s": 0,
            },
        ),
        (
            "gpu_memory",
            "memory_used_mib 1500\nmemory_reserved_mib 550\n" + PROCESSES,
            {
                "device_used_bytes": 1500 * MIB,  # without the driver's reserve
                "process_used_bytes": 1200 * MIB,
                "other_process_count": 2,
            },
        ),
    ],
)
def test_counters_become_columns(fake_nvml, watch, probe, script, values):
    fake_nvml.write(H100 + script)
    window = watch(fake_nvml, probe, 0.4)
    assert {name: window[name] for name in values} == values
    if probe == "busy":  # 20 fit into the window; the first and the last do not count
        assert 14 <= window["busy_sample_count"] <= 19
    if probe == "clocks":
        assert 0.19 <= window["power_throttled_s"] <= 0.6


@pytest.mark.long
def test_a_counter_outside_its_range_is_no_value(fake_nvml, watch):
    fake_nvml.write(H100 + COUNTERS.replace("5 62.25", "5 129.4").replace("7 60", "7 -1"))
    window = watch(fake_nvml, "gpm", 0.2)
    assert (window["any_tensor_ratio"], window["hmma_ratio"]) == (None, None)
    assert window.reasons == {
        "any_tensor_ratio": "the driver gave 129.4 %",
        "hmma_ratio": "the driver gave -1 %",
    }
    assert window["sm_active_ratio"] == 0.875


OF_ENERGY, OF_GPM = "refuse nvmlDeviceGetTotalEnergyConsumption", "refuse nvmlGpm"


@pytest.mark.long
@pytest.mark.parametrize(
    ("probe", "line", "reason"),
    [
        ("busy", "samples stale", "nvmlDeviceGetSamples: there is none"),
        ("busy", "samples garbage", "the driver gave 4.295e+09 %"),
        ("busy", "refuse nvmlDeviceGetSamples NOT_SUPPORTED", "this GPU does not offer it"),
        ("busy", "refuse nvmlDeviceGetSamples NO_PERMISSION", "this user may not read it"),
        ("busy", "lost 1", "the GPU is lost"),
        ("energy", f"{OF_ENERGY} NOT_SUPPORTED", "this GPU does not offer it"),
        ("energy", f"{OF_ENERGY} GPU_IS_LOST 2", "the GPU is lost"),
        ("energy", "power_w 0", "the counter did not move during the window"),
        ("gpm", "gpm 0", "came with Hopper"),
        ("gpm", f"{OF_GPM}QueryDeviceSupport NO_PERMISSION", "this user may not read it"),
        ("gpm", f"{OF_GPM}QueryDeviceSupport FUNCTION_NOT_FOUND", "the driver is too old"),
        ("gpm", f"{OF_GPM}SampleAlloc UNKNOWN", "nvmlGpmSampleAlloc: "),
        ("gpm", f"{OF_GPM}SampleGet GPU_IS_LOST", "the GPU is lost"),
        ("gpm", f"{OF_GPM}SampleGet GPU_IS_LOST 2", "the GPU is lost"),
        ("gpm", f"{OF_GPM}MetricsGet ARGUMENT_VERSION_MISMATCH", "too old for this form of it"),
        ("gpm", "lost 1", "the GPU is lost"),
    ],
)
def test_what_cannot_be_read_is_null_with_a_reason_and_nothing_stays_allocated(
    fake_nvml, watch, tmp_path, probe, line, reason
):
    calls = tmp_path / "calls"
    fake_nvml.write(f"{H100}{BUSY}{COUNTERS}{line}\ncount_calls {calls}\n")
    window = watch(fake_nvml, probe, 0.2)
    assert set(window.values()) == {None}
    assert all(reason in why for why in window.reasons.values()), window.reasons
    made = Counter(calls.read_text().split()) if calls.exists() else Counter()
    refused = "SampleAlloc" in line
    assert made["nvmlGpmSampleFree"] == (0 if refused else made["nvmlGpmSampleAlloc"])


@pytest.mark.long
def test_a_counter_that_the_driver_lacks_is_null_and_the_others_are_not(fake_nvml, watch):
    fake_nvml.write(H100 + "power_throttle_share unsupported\n")
    window = watch(fake_nvml, "clocks")
    assert window.reasons == {"power_throttled_s": "field 74: this GPU does not offer it"}
    fake_nvml.write(H100 + "refuse nvmlDeviceGetFieldValues FUNCTION_NOT_FOUND\n")
    reasons = watch(fake_nvml, "clocks").reasons
    assert set(reasons) == {"power_throttled_s", "sync_boost_throttled_s"}


@pytest.mark.long
def test_an_instance_has_counters_through_its_board_and_no_busy_time(fake_nvml, watch, tmp_path):
    calls = tmp_path / "calls"
    fake_nvml.write(f"{H100}{BUSY}{COUNTERS}{MIG}count_calls {calls}\n")
    assert watch(fake_nvml, "gpm", uuid=INSTANCE)["sm_active_ratio"] == 0.875
    made = Counter(calls.read_text().split())
    assert (made["nvmlGpmMigSampleGet"], made["nvmlGpmSampleGet"]) == (2, 0)
    busy = watch(fake_nvml, "busy", uuid=INSTANCE)
    assert "for whole GPUs only" in busy.reasons["kernel_busy_ratio"]


@pytest.mark.long
def test_the_gpu_is_found_by_its_uuid_and_not_by_its_index(fake_nvml, watch):
    other = H100.replace("1111111", "9999999") + "gpm_metric 2 10\n"
    fake_nvml.write(other + H100 + "gpm_metric 2 20\n")
    assert watch(fake_nvml, "gpm")["sm_active_ratio"] == 0.2
    unknown = "GPU-00000000-2222-3333-4444-555555555555"
    reason = watch(fake_nvml, "gpm", uuid=unknown).reasons["sm_active_ratio"]
    assert reason == f"{unknown}: there is none"


@pytest.mark.long
def test_processes_are_listed_after_the_window_and_unknown_in_a_container(
    fake_nvml, watch, tmp_path
):
    calls = tmp_path / "calls"
    fake_nvml.write(f"{H100}process 12 300\ncount_calls {calls}\n")
    window = watch(fake_nvml, "gpu_memory")
    assert window["device_used_bytes"] == 4 * MIB
    for name in ("process_used_bytes", "other_process_count"):
        assert "in a container" in window.reasons[name]
    made = calls.read_text().split()
    listed = made.index("nvmlDeviceGetComputeRunningProcesses_v3")
    assert listed > made.index("nvmlDeviceGetMemoryInfo_v2")
