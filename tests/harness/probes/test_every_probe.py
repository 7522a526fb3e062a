"""What every file in harness/probes/ fulfils."""

import re

import pytest

from attnbench.harness import probes
from attnbench.harness.machine.nvml import NO_GPU, Device

UNITS = ("ratio", "count", "mhz", "c", "j", "w", "s", "bytes", "mask", "cores", "table")


@pytest.fixture(params=probes.names())
def probe(request):
    return probes.load(request.param)


def test_columns_end_in_a_unit_and_have_a_meaning(probe):
    for name, meaning in probe.COLUMNS.items():
        assert name.rpartition("_")[2] in UNITS, name
        assert len(meaning) > 10
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)


def test_the_measures_read_from_its_file_are_those_of_the_module(probe):
    name = probe.__name__.rpartition(".")[2]
    assert probes.declared()[name] == (probe.MEASURES, probes.own_calls(probe) is not None)


NEW_PROBE = """
from attnbench.harness.probes import Readings, gpu_window

MEASURES = ("links",)
COLUMNS = {"pcie_width_count": "lanes of the PCIe link at the end of the window"}


def watch(device):
    return gpu_window(device, COLUMNS, start=lambda gpu: None, end=width, read=read)


def width(gpu):
    return gpu.query("nvmlDeviceGetCurrPcieLinkWidth")


def read(gpu, start, end):
    return Readings.of({"pcie_width_count": end})
"""


def test_a_new_probe_is_one_small_file(tmp_path, monkeypatch):
    (tmp_path / "links.py").write_text(NEW_PROBE)
    monkeypatch.setattr(probes, "__path__", [*probes.__path__, str(tmp_path)])
    probes.declared.cache_clear()
    try:
        (probe,) = probes.requested(["links"])
    finally:
        probes.declared.cache_clear()
        probes.load.cache_clear()
    with (watch := probe.watch(Device())):
        pass
    assert watch.readings().reasons == {"pcie_width_count": NO_GPU}


def test_without_a_gpu_every_column_has_a_value_or_a_reason(probe):
    watch = probe.watch(Device())
    with watch:
        sum(range(1000))
    values, reasons = watch.readings()
    assert set(values) == set(probe.COLUMNS)
    assert set(reasons) == {name for name, value in values.items() if value is None}
    assert all(reasons.values())


def test_only_what_is_asked_for_is_switched_on():
    assert probes.requested(("latency", "memory")) == ()
    assert {probe.__name__.rpartition(".")[2] for probe in probes.requested(("energy",))} == {
        "energy",
        "clocks",
    }
