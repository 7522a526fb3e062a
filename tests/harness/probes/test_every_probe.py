"""What holds for every file in harness/probes/, whoever adds it."""

import re
from typing import get_args

import pytest

from attnbench.harness import probes
from attnbench.harness.nvml import Device
from attnbench.harness.scenario import Measure

UNITS = ("ratio", "count", "mhz", "c", "j", "w", "s", "bytes", "mask", "cores", "table")


@pytest.fixture(params=probes.names())
def probe(request):
    return probes.load(request.param)


def test_columns_end_in_a_unit_and_say_what_they_mean(probe):
    for name, meaning in probe.COLUMNS.items():
        assert name.rpartition("_")[2] in UNITS, name
        assert len(meaning) > 10
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)


def test_it_is_switched_on_by_names_that_a_scenario_knows(probe):
    assert probe.MEASURES
    assert set(probe.MEASURES) <= set(get_args(Measure)) - {"latency", "memory"}


def test_without_a_gpu_every_column_has_a_value_or_a_reason(probe):
    watch = probe.watch(Device())
    with watch:
        sum(range(1000))
    values, reasons = watch.readings()
    assert set(values) == set(probe.COLUMNS)
    assert set(reasons) == {name for name, value in values.items() if value is None}
    assert all(reasons.values())


def test_no_two_probes_have_a_column_in_common():
    columns = [name for probe in map(probes.load, probes.names()) for name in probe.COLUMNS]
    assert len(columns) == len(set(columns))


def test_only_what_is_asked_for_is_switched_on():
    assert probes.requested(("latency", "memory")) == ()
    assert {probe.__name__.rpartition(".")[2] for probe in probes.requested(("energy",))} == {
        "energy",
        "clocks",
    }
