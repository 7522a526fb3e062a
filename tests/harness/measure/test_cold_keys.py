"""Copies of keys and values that take turns, in a worker of this process."""

from dataclasses import replace

import pytest

from attnbench.harness.cases.case import Case
from attnbench.harness.cases.costs import minimal_bytes
from attnbench.harness.measure import cold_keys
from attnbench.harness.worker import measure
from attnbench.impls.problem import Problem
from tests.harness.worker.configs import measurer_here, worker_config

CACHE_BYTES = 100_000
STEP = Problem(batch=2, seq_len=1, kv_seq_len=96, d_model=32, heads=4, kv_heads=2)
BACKEND = """
def prepare(problem, inputs, weights):
    q, k, v = inputs
    k, v = k{how}, v{how}
    shared = problem.heads // problem.kv_heads

    def call():
        keys, values = (one.repeat_interleave(shared, 1) for one in (k, v))
        return (q @ keys.mT * problem.scale).softmax(-1) @ values

    return call
"""


@pytest.fixture
def sampled(monkeypatch, tmp_path):
    """What a worker says of three blocks of the backends, by the kind of event."""
    monkeypatch.setattr(cold_keys, "cpu_cache_bytes", lambda _: CACHE_BYTES)
    monkeypatch.setattr(measure, "WARM_UP_S", 0.02)
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path))
    (tmp_path / "reading.py").write_text(BACKEND.format(how=""))
    (tmp_path / "keeping.py").write_text(BACKEND.format(how=".mT.mT"))  # views, as of pages

    def sample(names, problem, *, cold=True):
        events = []
        config = worker_config(measure=("latency",), max_warm_up_s=0.05, cold_caches=cold)
        measurer = measurer_here(config, events.append)
        cases = [Case(backend=name, problem=problem) for name in names]
        measurer.check(cases)
        measurer.warm_up(cases)
        for _ in range(3):
            measurer.sample(cases, {case.id: 5 for case in cases})
        measurer.confirm(cases)
        return lambda kind: [event for event in events if event["event"] == kind]

    return sample


@pytest.fixture
def memory(monkeypatch):
    """Where the keys were, for each time that other copies took their turn."""
    seen: list[int] = []
    give = cold_keys.Turns._give

    def noted(turns, copy):
        give(turns, copy)
        seen.append(turns._tensors[0].data_ptr())

    monkeypatch.setattr(cold_keys.Turns, "_give", noted)
    return seen


def test_calls_read_other_memory_until_they_have_read_twice_the_caches(sampled, memory):
    events = sampled(["reading", "fused"], STEP)
    assert not events("ended")
    assert len(events("samples")) == 6
    (count,) = {event["kv_copies"] for event in events("warm")}
    assert count * minimal_bytes(STEP) >= 2 * CACHE_BYTES > (count - 1) * minimal_bytes(STEP)
    assert len(set(memory)) == count
    last_block = memory[-6:]  # before each of 5 calls, and at the end of the block
    assert len(set(last_block[:5])) == min(count, 5)


def test_a_call_that_reads_what_it_made_of_its_keys_before_is_refused(sampled):
    events = sampled(["keeping", "fused"], STEP)
    (ended,) = events("ended")
    assert (ended["case"].partition("-")[0], ended["status"]) == ("keeping", "unsupported")
    assert "set plan.caches to warm" in ended["reason"]
    assert [event["case"].partition("-")[0] for event in events("warm")] == ["fused"]


@pytest.mark.parametrize(
    ("names", "change"),
    [
        (("kv_cache", "kv_cache:blocks"), {"kv_dtype": "int8"}),
        (("kv_cache",), {"kv_dtype": "fp8", "page": 16, "dtype": "bf16"}),
        (("mla:absorbed",), {"kv_heads": 4, "latent": 24, "d_k": 12, "rope": 4}),
        (("hf:sdpa",), {"causal": True, "causal_align": "bottom_right", "mask": "none"}),
    ],
)
def test_stored_keys_take_turns_with_their_scales_and_as_one_tensor(sampled, names, change):
    events = sampled(names, replace(STEP, **change))
    assert not events("ended")
    assert all(event["kv_copies"] > 1 for event in events("warm"))


@pytest.mark.parametrize(
    ("change", "cold"),
    [
        ({"seq_len": 96}, True),
        ({"passes": "backward"}, True),
        ({"scope": "layer"}, True),
        ({}, False),
    ],
)
def test_nothing_takes_turns_where_no_cache_is_read_or_that_is_not_asked(
    sampled, memory, change, cold
):
    events = sampled(["fused"], replace(STEP, **change), cold=cold)
    assert [event["kv_copies"] for event in events("warm")] == [None]
    assert not memory


def test_one_copy_does_where_a_call_reads_more_than_the_caches_hold(sampled, monkeypatch):
    monkeypatch.setattr(cold_keys, "cpu_cache_bytes", lambda _: 1_000)
    events = sampled(["keeping"], STEP)  # whatever it reads is not in them
    assert [event["kv_copies"] for event in events("warm")] == [1]
