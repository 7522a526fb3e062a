"""Watches of probes under a scripted driver."""

import json
import sys
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.conftest import environment, ran
from tests.fakes.nvml.driver import UUID, FakeDriver

PROGRAM = """
import json, sys, time
from attnbench.harness.devices import probes
from attnbench.harness.devices.nvml import Device

asked = json.loads(sys.argv[1])
found = {}
for name in asked["probes"]:
    watch = probes.load(name).watch(Device(uuid=asked["uuid"]))
    with watch:
        until = time.monotonic() + asked["window_s"]
        while time.monotonic() < until:
            time.sleep(0.01)
    values, reasons = watch.readings()
    found[name] = {"values": values, "reasons": reasons}
print(json.dumps(found))
"""


class Window(dict[str, Any]):
    """Values of the columns; `reasons` of the columns that are None."""

    reasons: Mapping[str, str]


def watched(
    driver: FakeDriver | None, probe: str, window_s: float = 0.15, uuid: str = UUID
) -> Window:
    """One window of one probe in a new process: the loader reads LD_LIBRARY_PATH at its start."""
    asked = json.dumps({"probes": [probe], "uuid": uuid, "window_s": window_s})
    done = ran(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), asked],
        env=environment(driver.environment if driver else {}),
        check=True,
    )
    found = json.loads(done.stdout)[probe]
    window = Window(found["values"])
    window.reasons = found["reasons"]
    assert set(window.reasons) == {name for name, value in window.items() if value is None}
    return window


@pytest.fixture
def watch() -> Callable[..., Window]:
    return watched
