"""How often a case is called before it is timed."""

import pytest

from attnbench.harness.measure import clock
from attnbench.harness.measure.clock import HostClock
from attnbench.harness.worker import warm_up
from attnbench.harness.worker.warm_up import call_until_stationary


@pytest.mark.parametrize(
    ("before_ms", "each_s", "calls", "typical_ms"),
    [
        ([95.0], 20e-6, range(9, 2000), 0.02),  # the first call has loaded a library
        ([95.0, 0.02], 20e-6, range(8, 2000), 0.02),
        ([95.0], 30e-3, range(1, 2), 62.5),  # ten of them would take longer than there is
        ([400.0], 0.4, range(1), 400.0),  # one call is all there is time for
    ],
)
def test_a_slow_first_call_alone_is_no_warm_up(
    monkeypatch: pytest.MonkeyPatch,
    before_ms: list[float],
    each_s: float,
    calls: range,
    typical_ms: float,
) -> None:
    passed_s = 0.0

    def run() -> None:
        nonlocal passed_s
        passed_s += each_s

    monkeypatch.setattr(warm_up, "now_s", lambda: passed_s)
    monkeypatch.setattr(clock, "now_ns", lambda: passed_s * 1e9)
    readings = [*before_ms]
    looks: list[bool] = []

    def look(_: object, *, must: bool) -> None:
        looks.append(must)

    _, call_ms = call_until_stationary(run, HostClock(), readings, (0.05, 0.05), look)
    assert len(looks) in calls
    assert len(readings) == len(before_ms) + len(looks)
    assert call_ms == pytest.approx(typical_ms)
