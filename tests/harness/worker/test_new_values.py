"""What values inputs have in which block, in a worker: new ones, and those that were checked."""

from dataclasses import replace
from itertools import product

import pytest

from attnbench.harness.cases.case import Case
from attnbench.harness.worker import measure
from attnbench.impls.problem import Problem
from tests.harness.worker.configs import measurer_here, worker_config

pytestmark = pytest.mark.long

PROBLEM = Problem(batch=2, seq_len=48, d_model=32, heads=4, kv_heads=2)


@pytest.fixture
def short_warm_up(monkeypatch):
    monkeypatch.setattr(measure, "WARM_UP_S", 0.02)
    monkeypatch.setattr(measure, "WARM_AGAIN_S", 0.02)


def sampled_on_cpu(names, problem, blocks):
    """A worker in this process that has sampled some blocks of the backends, and its events."""
    events = []
    config = worker_config(measure=("latency",), max_warm_up_s=0.05)
    measurer = measurer_here(config, events.append)
    cases = [Case(backend=name, problem=problem) for name in names]
    measurer.check(cases)
    measurer.warm_up(cases)
    for _ in range(blocks):
        measurer.sample(cases, {case.id: 2 for case in cases})
    return measurer, events, cases


STORED = [
    (("kv_cache", "kv_cache:blocks"), {"kv_dtype": "int8"}),
    (("kv_cache", "kv_cache:blocks"), {"kv_dtype": "fp8", "page": 16, "dtype": "bf16"}),
    (("kv_cache", "cascade"), {"prefix": 16, "seq_len": 32, "kv_seq_len": 64}),
    (("mla:absorbed", "mla:unabsorbed"), {"kv_heads": 4, "latent": 24, "d_k": 12, "rope": 4}),
]
PLAIN = [
    {},
    {"dtype": "bf16", "passes": "forward+backward"},
    {"passes": "backward"},
    {"scope": "layer", "passes": "forward+backward"},
]


@pytest.mark.parametrize(
    ("names", "change"),
    [*product((("fused", "sdpa", "naive"), ("sdpa", "performer:64")), PLAIN), *STORED],
)
def test_honest_backends_follow_new_values_in_every_block(short_warm_up, names, change):
    measurer, events, cases = sampled_on_cpu(names, replace(PROBLEM, **change), blocks=4)
    measurer.confirm(cases)
    kinds = [event["event"] for event in events]
    assert "ended" not in kinds
    assert kinds.count("samples") == 4 * len(cases)
