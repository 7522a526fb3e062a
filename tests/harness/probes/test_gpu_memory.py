import pytest

from tests.fakes.nvml.driver import H100

MIB = 1 << 20


@pytest.mark.long
def test_used_memory_excludes_the_drivers_reserve(fake_nvml, watch):
    fake_nvml.write(H100 + "memory_used_mib 1500\nmemory_reserved_mib 550\nprocess self 1200\n")
    window = watch(fake_nvml, "gpu_memory")
    assert window == {
        "device_used_bytes": 1500 * MIB,
        "process_used_bytes": 1200 * MIB,
        "other_process_count": 0,
    }


def test_processes_of_others_are_counted(fake_nvml, watch):
    fake_nvml.write(H100 + "process self 1200\nprocess 999999 300\nprocess 999998 unknown\n")
    assert watch(fake_nvml, "gpu_memory")["other_process_count"] == 2


@pytest.mark.long
def test_if_our_own_process_is_not_listed_others_are_unknown(fake_nvml, watch):
    fake_nvml.write(H100 + "process 12 300\n")
    window = watch(fake_nvml, "gpu_memory")
    assert window["device_used_bytes"] == 4 * MIB
    assert "in a container" in window.reasons["process_used_bytes"]
    assert "in a container" in window.reasons["other_process_count"]


@pytest.mark.long
def test_processes_are_listed_after_the_window_and_not_within(fake_nvml, watch, tmp_path):
    calls = tmp_path / "calls"
    fake_nvml.write(H100 + f"process self 1\ncount_calls {calls}\n")
    watch(fake_nvml, "gpu_memory")
    made = calls.read_text().split()
    assert made.index("nvmlDeviceGetComputeRunningProcesses_v3") > made.index(
        "nvmlDeviceGetMemoryInfo_v2"
    )
