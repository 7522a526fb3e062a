"""The host's clock of a fake GPU: turned by hand, or the real one."""

import sys
import time
from types import ModuleType, SimpleNamespace

import pytest


class HandClock:
    """Time passes where the fake says so: while the host launches, waits and sleeps."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def now(self) -> float:
        return self.now_s

    def pass_s(self, seconds: float) -> None:
        """The host is busy for so long."""
        self.now_s += seconds

    def wait_until(self, end_s: float) -> None:
        self.now_s = max(self.now_s, end_s)

    def now_ns(self) -> int:
        return round(self.now_s * 1e9)


class RealClock:
    """For a worker process of a real run: launching takes what it takes."""

    def now(self) -> float:
        return time.perf_counter()

    def pass_s(self, seconds: float) -> None: ...

    def wait_until(self, end_s: float) -> None:
        while (left_s := end_s - time.perf_counter()) > 0:
            time.sleep(left_s)


Clock = HandClock | RealClock

READINGS = ("perf_counter", "perf_counter_ns", "monotonic")
_REAL = {getattr(time, name): name for name in (*READINGS, "sleep")}


def turned_by_hand(clock: HandClock, monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Every loaded module of these packages reads this clock, whatever name it gave the time's
    functions, and sleeps by it.
    """
    ours = {
        "perf_counter": clock.now,
        "perf_counter_ns": clock.now_ns,
        "monotonic": clock.now,
        "sleep": clock.pass_s,
    }
    module = SimpleNamespace(**{**vars(time), **ours})
    for name, loaded in list(sys.modules.items()):
        if not name.startswith(packages) or not isinstance(loaded, ModuleType):
            continue
        for attribute, value in list(vars(loaded).items()):
            if value is time:
                monkeypatch.setattr(loaded, attribute, module)
            elif getattr(value, "__hash__", None) and not isinstance(value, type):
                try:
                    function = _REAL.get(value)
                except TypeError:
                    continue
                if function:
                    monkeypatch.setattr(loaded, attribute, ours[function])
