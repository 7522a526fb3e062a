"""Intervals cover the truth: simulated latencies with known truth, from calls to intervals.

They have what real ones have: processes that differ, blocks that drift, correlated calls (AR(1))
and spikes. They go through the Sampler that decides how long a real group is measured, so early
stopping is tested too.
"""

import math
from functools import cache

import numpy as np
import pytest

from attnbench.harness.run.sampling import Sampler
from attnbench.harness.scenario import Plan
from attnbench.harness.stats.intervals import latency_interval, ratio_interval

SEEDS = 1000
CALLS = 5
ONE = Plan(like="quick", processes=1, min_blocks=6, max_blocks=11)
STANDARD = Plan(like="standard")


class Machine:
    """Latencies in ms of cases with known true values."""

    def __init__(
        self,
        seed,
        truths,
        *,
        process_sd=0.04,
        block_sd=0.01,
        drift_sd=0.0,
        call_sd=0.03,
        rho=0.6,
        spike_share=0.02,
    ):
        self.rng = np.random.default_rng(seed)
        self.truths = truths
        self.block_sd, self.drift_sd, self.call_sd = block_sd, drift_sd, call_sd
        self.rho, self.spike_share = rho, spike_share
        self.process = {
            (name, p): self.rng.normal(0, process_sd) for name in truths for p in range(64)
        }
        self.drift = {}

    def block(self, name, process, number):
        common = self.drift.setdefault((process, number), self.rng.normal(0, self.drift_sd))
        own = self.process[name, process] + self.rng.normal(0, self.block_sd)
        level = math.log(self.truths[name]) + common + own
        noise = np.empty(CALLS)
        state = self.rng.normal()
        for call in range(CALLS):
            state = self.rho * state + math.sqrt(1 - self.rho**2) * self.rng.normal()
            noise[call] = self.call_sd * state
        spiked = self.rng.random(CALLS) < self.spike_share
        spikes = np.where(spiked, self.rng.uniform(1.2, 3.0, CALLS), 1.0)
        return list(np.exp(level + noise) * spikes)


def sampled(plan, names, pairs, draw, block_s=None):
    """The samples that a run takes, whose blocks `draw` gives: of a name, process and number.

    A block takes `block_s`; as long as its calls, if that is None.
    """
    sampler = Sampler(plan, names, pairs)
    progress = True
    while progress:
        progress = False
        for process in range(plan.processes):
            while wanting := sampler.wanting(process):
                progress = True
                for name in wanting:
                    sampling = sampler.samplings[name]
                    block = draw(name, process, sampling.blocks(process))
                    sampling.add(process, {"block_ms": block}, block_s or sum(block) / 1e3)
    return {name: sampling.block_ms for name, sampling in sampler.samplings.items()}


@cache
def coverage(plan, kind, **effects):
    hits = 0
    for seed in range(SEEDS):
        machine = Machine(seed, {"a": 3.0, "b": 2.0}, **effects)
        samples = sampled(plan, machine.truths, (("a", "b"),), machine.block)
        if kind == "latency":
            interval, truth = latency_interval(samples["a"]), 3.0
        else:
            interval, truth = ratio_interval(samples["a"], samples["b"]), 1.5
        hits += interval.low <= truth <= interval.high
    return hits / SEEDS


@pytest.mark.long
@pytest.mark.parametrize(
    ("plan", "kind", "effects"),
    [
        (STANDARD, "latency", {"process_sd": 0.015}),  # it often stops early
        (ONE, "latency", {"process_sd": 0.0}),
        (ONE, "ratio", {"process_sd": 0.0, "drift_sd": 0.2}),
    ],
)
def test_intervals_cover_the_truth_of_processes_or_of_one_under_drift_between_blocks(
    plan, kind, effects
):
    assert 0.93 <= coverage(plan, kind, **effects) <= 0.98


@pytest.mark.long
@pytest.mark.parametrize("plan", [ONE, Plan(like="quick")], ids=["one", "quick"])
def test_equal_cases_differ_in_at_most_5_percent_of_runs(plan):
    alarms = 0
    process_sd = 0.0 if plan is ONE else 0.04  # one process cannot see that processes differ
    for seed in range(SEEDS):
        machine = Machine(seed, {"a": 2.0, "b": 2.0}, process_sd=process_sd, drift_sd=0.05)
        samples = sampled(plan, machine.truths, (("a", "b"),), machine.block)
        interval = ratio_interval(samples["a"], samples["b"])
        alarms += not interval.low <= 1 <= interval.high
    assert alarms / SEEDS <= 0.05
