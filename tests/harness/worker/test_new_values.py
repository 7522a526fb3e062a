"""Honest backends follow new numbers in every round, and the judge finds their results right."""

from dataclasses import replace
from itertools import product

import pytest

from attnbench.harness.cases.case import Case
from attnbench.harness.measure.judge import Judge, Seeds
from attnbench.impls.problem import Problem
from tests.harness.worker.configs import sampled

pytestmark = pytest.mark.long

PROBLEM = Problem(batch=2, seq_len=48, d_model=32, heads=4, kv_heads=2)
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
    {"scope": "block"},
]


@pytest.mark.parametrize(
    ("names", "change"), [*product((("fused", "sdpa", "naive"),), PLAIN), *STORED]
)
def test_what_timed_calls_return_is_right_on_the_numbers_of_each_round(names, change):
    problem = replace(PROBLEM, **change)
    cases = [Case(backend=name, problem=problem) for name in names]
    sampling, _ = sampled(cases, blocks=1)
    judge = Judge()
    for seed in (7, 8):
        for case in cases:
            sampling.sample(case.id, seed, 3)
            values = 0 if problem.passes == "backward" else seed
            results = sampling.output(case.id, seed + 100)["numbers"]
            found = judge.judged(problem, Seeds(values, 0, seed + 100), results)
            assert found.complaint == ""
            assert found.error_ratio <= 2.0


def test_a_round_gives_other_numbers_and_the_same_ones_to_each_backend():
    cases = [Case(backend=name, problem=PROBLEM) for name in ("fused", "sdpa")]
    sampling, _ = sampled(cases, blocks=1)
    values = sampling.values[PROBLEM, "heads"]
    (fused, sdpa), before = cases, values.tensors.inputs.key.clone()
    sampling.sample(fused.id, 5, 4)
    after = values.tensors.inputs.key.clone()
    sampling.sample(sdpa.id, 5, 4)
    assert not before.equal(after)
    assert values.tensors.inputs.key.equal(after)
