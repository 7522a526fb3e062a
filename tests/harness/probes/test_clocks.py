import pytest

from tests.fakes.nvml.driver import H100


def test_clocks_temperature_reasons_and_throttled_time(fake_nvml, watch):
    fake_nvml.write(
        H100 + "sm_clock_mhz 1755\nevent_reasons 0x4\ntemperature_c 66\npower_throttle_share 0.5\n"
    )
    window = watch(fake_nvml, "clocks", 0.3)
    names = ("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "clock_event_mask")
    assert [window[name] for name in names] == [1755, 2619, 66, 4]
    assert 0.14 <= window["power_throttled_s"] <= 0.5
    assert window["sync_boost_throttled_s"] == 0


@pytest.mark.long
def test_a_counter_that_the_driver_lacks_is_null_and_the_others_are_not(fake_nvml, watch):
    fake_nvml.write(H100 + "power_throttle_share unsupported\n")
    window = watch(fake_nvml, "clocks")
    assert window.reasons == {"power_throttled_s": "field 74: this GPU does not offer it"}
    fake_nvml.write(H100 + "refuse nvmlDeviceGetFieldValues FUNCTION_NOT_FOUND\n")
    reasons = watch(fake_nvml, "clocks").reasons
    assert set(reasons) == {"power_throttled_s", "sync_boost_throttled_s"}
