import pytest

from tests.fakes.nvml.driver import H100

FAST = "busy_percent 97\nmemory_busy_percent 40\nsample_period_ms 20\n"


def test_busy_time_comes_from_the_samples_inside_the_window(fake_nvml, watch):
    fake_nvml.write(H100 + FAST)
    window = watch(fake_nvml, "busy", 0.4)
    assert (window["kernel_busy_ratio"], window["memory_busy_ratio"]) == (0.97, 0.4)
    # 20 fit into the window; the first and the last do not count.
    assert 14 <= window["busy_sample_count"] <= 19


REFUSALS = [
    ("samples stale\n", "nvmlDeviceGetSamples: there is none"),
    ("samples garbage\n", "impossible values only"),
    (
        "refuse nvmlDeviceGetSamples NOT_SUPPORTED\n",
        "nvmlDeviceGetSamples: this GPU does not offer it",
    ),
    ("refuse nvmlDeviceGetSamples NO_PERMISSION\n", "this user may not read it"),
    ("lost 1\n", "the GPU is lost"),
]


@pytest.mark.long
@pytest.mark.parametrize(("line", "reason"), REFUSALS)
def test_a_refusal_is_a_reason(fake_nvml, watch, line, reason):
    fake_nvml.write(H100 + FAST + line)
    window = watch(fake_nvml, "busy", 0.2)
    assert window["kernel_busy_ratio"] is None
    assert reason in window.reasons["kernel_busy_ratio"]


@pytest.mark.long
def test_an_instance_has_no_busy_time_of_its_own(fake_nvml, watch):
    uuid = "MIG-aaaaaaaa-2222-3333-4444-555555555555"
    fake_nvml.write(
        H100
        + FAST
        + f"mig 1\nmig_device {uuid} gpu_instance 3 memory_total_mib 10240 memory_used_mib 100\n"
    )
    assert "for whole GPUs only" in watch(fake_nvml, "busy", uuid=uuid).reasons["kernel_busy_ratio"]
