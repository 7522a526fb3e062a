"""calibration.jsonl, with whole and torn lines."""

from attnbench.harness.devices.calibration_file import FILE, append_line, newest_calibration
from tests.fakes.nvml.driver import UUID

LINE = {"schema": 1, "device_uuid": UUID, "device_name": "a GPU", "peaks": {}, "checks": []}


def add(root, **changes):
    append_line(root / FILE, LINE | {"utc": "0"} | changes)


def test_the_newest_line_of_a_device_is_found_past_torn_lines(tmp_path):
    add(tmp_path, utc="1")
    add(tmp_path, utc="2")
    add(tmp_path, utc="3", device_uuid="GPU-other")
    with (tmp_path / FILE).open("a") as file:
        file.write('{"schema": 1, "utc": "torn", "device_uu')
    assert newest_calibration(tmp_path, UUID, None)["utc"] == "2"
    add(tmp_path, utc="4")
    assert newest_calibration(tmp_path, UUID, None)["utc"] == "4"
    with (tmp_path / FILE).open("a") as file:
        file.write('\n[1]\n{"schema": 99}\n\xff\n')
    assert newest_calibration(tmp_path, UUID, None)["utc"] == "4"


def test_a_cpu_is_found_by_its_name(tmp_path):
    assert newest_calibration(tmp_path, UUID, None) is None
    add(tmp_path, device_uuid=None, device_name="Some CPU")
    assert newest_calibration(tmp_path, None, "Some CPU")
    assert newest_calibration(tmp_path, None, "Other CPU") is None
    assert newest_calibration(tmp_path, None, None) is None
