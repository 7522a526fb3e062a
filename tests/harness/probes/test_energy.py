import pytest

from tests.fakes.nvml.driver import H100


def test_energy_is_power_times_time(fake_nvml, watch):
    fake_nvml.write(H100 + "power_w 350\nenergy_step_ms 0\n")
    window = watch(fake_nvml, "energy", 0.3)
    assert window["power_w"] == pytest.approx(350, rel=0.02)
    # The window lasts at least 0.3 s, and longer on a busy machine.
    assert window["energy_j"] == pytest.approx(105, rel=0.3)


REFUSALS = [
    ("refuse nvmlDeviceGetTotalEnergyConsumption NOT_SUPPORTED\n", "this GPU does not offer it"),
    ("refuse nvmlDeviceGetTotalEnergyConsumption GPU_IS_LOST 2\n", "the GPU is lost"),
    ("power_w 0\n", "the counter did not move during the window"),
]


@pytest.mark.long
@pytest.mark.parametrize(("line", "reason"), REFUSALS)
def test_energy_that_was_not_counted_is_null_and_never_zero(fake_nvml, watch, line, reason):
    fake_nvml.write(H100 + line)
    window = watch(fake_nvml, "energy")
    assert set(window.values()) == {None}
    assert reason in window.reasons["energy_j"]
