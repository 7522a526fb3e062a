"""When the sampler samples and pauses."""

from itertools import pairwise

from attnbench.harness.machine.nvml import Reading
from attnbench.harness.telemetry import sampler
from attnbench.harness.telemetry.sampler import next_due_ns
from attnbench.harness.telemetry.sources import PERIOD_NS


def test_deadlines_are_on_a_grid_and_a_stall_is_not_made_up_for():
    assert next_due_ns(0, 0) == next_due_ns(0, PERIOD_NS // 3) == PERIOD_NS
    assert next_due_ns(0, 2 * PERIOD_NS // 3) == 2 * PERIOD_NS
    assert next_due_ns(0, 10 * PERIOD_NS + 1) == 11 * PERIOD_NS


class Turned:
    """A parent whose clock the test turns: what it asks at which time; `serve` waits in no time.

    `late_ns`: how much later than asked each wait ends.
    """

    def __init__(self, requests, end_ns, late_ns=lambda now_ns: 0):
        self.now_ns = 0
        self.said = []
        self._requests = requests
        self._end_ns = end_ns
        self._late_ns = late_ns

    def monotonic_ns(self):
        return self.now_ns

    def poll(self, wait_s):
        until_ns = self._end_ns if wait_s is None else self.now_ns + round(wait_s * 1e9)
        until_ns += self._late_ns(self.now_ns)
        if self._requests and self._requests[0][0] <= until_ns:
            at_ns, request = self._requests.pop(0)
            self.now_ns = max(self.now_ns, at_ns)
            return [request]
        self.now_ns = until_ns
        return None if self.now_ns >= self._end_ns else []

    def say(self, event):
        self.said.append(event)


class Idle:
    def __init__(self, lead_ns=PERIOD_NS):
        self.header = {"kind": "host"}
        self.lead_ns = lead_ns

    def begin(self, pids):
        pass

    def read(self):
        return {"busy": Reading(1.0, "")}


class Lines(list):
    def times(self):
        return [line["t_ns"] for line in self if "t_ns" in line]


def served(monkeypatch, parent, lead_ns=PERIOD_NS):
    lines = Lines()
    monkeypatch.setattr(sampler, "time", parent)
    sampler.serve(Idle(lead_ns), lines, parent)
    return lines


def asked(*requests):
    return [(round(at * PERIOD_NS), request) for at, request in requests]


def sample(what):
    return {"op": "sample", "what": what, "pids": []}


PAUSE = {"op": "pause"}


def test_samples_come_at_the_rate_with_the_name_of_what_runs(monkeypatch):
    parent = Turned(asked((0, sample("fused")), (10.5, sample("sdpa"))), 20 * PERIOD_NS)
    lines = served(monkeypatch, parent)
    names = [line["what"] for line in lines if "what" in line]
    assert names == ["fused"] * 10 + ["sdpa"] * 9
    steps = [later - earlier for earlier, later in pairwise(lines.times())]
    assert steps == [PERIOD_NS] * 9 + [1.5 * PERIOD_NS] + [PERIOD_NS] * 8


def test_a_stalled_sampler_goes_on_without_a_burst(monkeypatch):
    stall = {3 * PERIOD_NS: 6 * PERIOD_NS}
    parent = Turned(
        asked((0, sample("fused"))), 15 * PERIOD_NS, lambda now_ns: stall.pop(now_ns, 0)
    )
    times = [time_ns // PERIOD_NS for time_ns in served(monkeypatch, parent).times()]
    assert times == [1, 2, 3, 10, 11, 12, 13, 14]


def test_many_short_phases_do_not_raise_the_rate(monkeypatch):
    requests = [
        (phase / 10 + late, request)
        for phase in range(100)
        for late, request in ((0, sample(f"phase {phase}")), (0.09, PAUSE))
    ]
    parent = Turned(asked(*requests), 20 * PERIOD_NS)
    times = served(monkeypatch, parent, lead_ns=0).times()
    assert len(times) > 5
    assert all(later - earlier >= PERIOD_NS for earlier, later in pairwise(times))
    assert parent.said == [{"event": "paused"}] * 100
