from collections import Counter

import pytest

from tests.fakes.nvml.driver import H100

UUID = "MIG-aaaaaaaa-2222-3333-4444-555555555555"
ALL = """\
gpm_metric 1 99
gpm_metric 2 87.5
gpm_metric 3 41
gpm_metric 5 62.25
gpm_metric 7 60
gpm_metric 10 33
"""
MIG = f"mig 1\nmig_device {UUID} gpu_instance 3 memory_total_mib 10240 memory_used_mib 100\n"


def test_counters_become_ratios(fake_nvml, watch):
    fake_nvml.write(H100 + ALL)
    assert watch(fake_nvml, "gpm") == {
        "graphics_ratio": 0.99,
        "sm_active_ratio": 0.875,
        "sm_occupancy_ratio": 0.41,
        "any_tensor_ratio": 0.6225,
        "hmma_ratio": 0.6,
        "dram_bandwidth_ratio": 0.33,
    }


REFUSALS = [
    ("gpm 0\n", "came with Hopper"),
    (
        "refuse nvmlGpmQueryDeviceSupport NO_PERMISSION\n",
        "nvmlGpmQueryDeviceSupport: this user may not read it",
    ),
    ("refuse nvmlGpmQueryDeviceSupport FUNCTION_NOT_FOUND\n", "the driver is too old to have it"),
    ("refuse nvmlGpmSampleAlloc UNKNOWN\n", "nvmlGpmSampleAlloc: "),
    ("refuse nvmlGpmSampleGet GPU_IS_LOST\n", "the GPU is lost"),
    ("refuse nvmlGpmSampleGet GPU_IS_LOST 2\n", "the GPU is lost"),
    ("refuse nvmlGpmMetricsGet ARGUMENT_VERSION_MISMATCH\n", "too old for this form of it"),
    ("lost 1\n", "the GPU is lost"),
]


@pytest.mark.long
@pytest.mark.parametrize(("line", "reason"), REFUSALS)
def test_a_refusal_is_a_reason_and_frees_what_was_allocated(
    fake_nvml, watch, tmp_path, line, reason
):
    calls = tmp_path / "calls"
    fake_nvml.write(H100 + ALL + line + f"count_calls {calls}\n")
    window = watch(fake_nvml, "gpm")
    assert set(window.values()) == {None}
    assert all(reason in why for why in window.reasons.values()), window.reasons
    made = Counter(calls.read_text().split())
    refused = "SampleAlloc" in line
    assert made["nvmlGpmSampleFree"] == (0 if refused else made["nvmlGpmSampleAlloc"])


@pytest.mark.long
def test_an_instance_of_a_gpu_is_sampled_through_its_board(fake_nvml, watch, tmp_path):
    calls = tmp_path / "calls"
    fake_nvml.write(H100 + ALL + MIG + f"count_calls {calls}\n")
    assert watch(fake_nvml, "gpm", uuid=UUID)["sm_active_ratio"] == 0.875
    made = Counter(calls.read_text().split())
    assert (made["nvmlGpmMigSampleGet"], made["nvmlGpmSampleGet"]) == (2, 0)


@pytest.mark.long
def test_the_gpu_is_found_by_its_uuid_and_not_by_its_index(fake_nvml, watch):
    other = H100.replace("1111111", "9999999") + "gpm_metric 2 10\n"
    fake_nvml.write(other + H100 + "gpm_metric 2 20\n")
    assert watch(fake_nvml, "gpm")["sm_active_ratio"] == 0.2
    unknown = "GPU-00000000-2222-3333-4444-555555555555"
    reason = watch(fake_nvml, "gpm", uuid=unknown).reasons["sm_active_ratio"]
    assert reason == f"{unknown}: there is none"
