"""What every file in harness/devices/probes/ fulfils."""

import re

import pytest

from attnbench.harness.devices import probes
from attnbench.harness.devices.nvml import Device

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
