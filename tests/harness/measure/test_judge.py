"""The judge: honest results pass; wrong ones, and those of earlier values, do not."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from attnbench import impls
from attnbench.harness.measure.judge import (
    COLUMNS,
    FROM_MEMORY,
    PLACES,
    BadResult,
    Judge,
    places,
    taken,
    write_gradient,
)
from attnbench.harness.measure.prepared_call import make_gradient
from attnbench.impls.backend import Inputs
from attnbench.impls.problem import Problem
from attnbench.impls.shared.inputs import made_entries
from tests.judged_blocks import CPU, SEEDS, judged

SMALL = Problem(batch=3, seq_len=160, d_model=32, heads=4)
DECODING = {"seq_len": 4, "kv_seq_len": 90}
TRAINED = replace(SMALL, passes="forward+backward")
PROBLEMS = [
    SMALL,
    TRAINED,
    replace(SMALL, passes="backward", causal=True),
    replace(SMALL, kv_heads=2, causal=True),
    replace(TRAINED, kv_heads=1, d_k=5, d_v=9),
    replace(SMALL, mask="padding"),
    replace(TRAINED, mask="random"),
    replace(TRAINED, mask="local", window=7),
    replace(TRAINED, sinks=True),
    replace(TRAINED, softcap=5.0),
    replace(SMALL, scope="layer"),
    replace(TRAINED, scope="layer"),
    replace(TRAINED, scope="layer", kv_seq_len=90),
    replace(SMALL, scope="block", passes="backward"),
    replace(SMALL, causal=True, causal_align="bottom_right", seq_len=60, kv_seq_len=30),
    Problem(batch=1, seq_len=1, d_model=8, heads=1, passes="backward"),
    Problem(lengths="q70_q30s50_3q1s20", batch=1, d_model=32, heads=2, causal=True),
]


def copies(what: str, remembers: bool = False) -> SimpleNamespace:
    """A backend that copies an input in `prepare`, or gives its first result ever after."""
    honest = impls.load("sdpa")

    def prepare(problem, inputs, weights):
        own = {name: one.detach().clone() for name, one in inputs.named().items()}
        kept = {what: own[what].requires_grad_(problem.backward)} if what else own
        call = honest.prepare(problem, replace(inputs, **kept), weights)
        first = call().detach()
        return (lambda: first) if remembers else call

    return SimpleNamespace(
        name="copies", exactness="exact", context=honest.context, prepare=prepare
    )


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_honest_results_pass(problem, dtype):
    problem, judge = replace(problem, dtype=dtype), Judge()
    backends = ["naive", "fused", "sdpa", "varlen"]
    able = [one for one in backends if not impls.load(one).why_not(problem, CPU)]
    assert able
    for name in able:
        verdict = judged(problem, name, judge=judge)
        assert verdict.complaint == ""
        assert 0 <= verdict.error_ratio <= verdict.error_limit_ratio


@pytest.mark.parametrize(
    ("backend", "shape"),
    [
        ("kv_cache", {"page": 16}),
        ("kv_cache:blocks", {"kv_dtype": "int8"}),
        ("kv_cache", {"page": 16, "kv_dtype": "fp8"}),
        ("kv_cache", {"prefix": 32}),
        ("kv_cache", {"prefix": 32, "passes": "forward+backward"}),
        ("mla", {"latent": 12, "rope": 2}),
    ],
)
def test_stored_keys_are_drawn_again(backend, shape):
    problem = replace(SMALL, batch=5, **DECODING, **shape)
    assert judged(problem, backend).complaint == ""
    assert "times as far" in judged(problem, backend, change=scaled).complaint


def scaled(results):
    results[-1] *= 1.001


def a_row(results):
    results[0][:, 1, places(SMALL, SEEDS.places).rows[2]] *= 1.02


def rolled_heads(results):
    results[0].copy_(results[0].roll(1, 1))


@pytest.mark.parametrize("change", [scaled, a_row, rolled_heads])
def test_wrong_outputs_are_convicted(change):
    verdict = judged(SMALL, change=change)
    assert "times as far" in verdict.complaint


@pytest.mark.parametrize("scope", ["core", "layer"])
@pytest.mark.parametrize("passes", ["backward", "forward+backward"])
def test_every_gradient_is_judged(scope, passes):
    problem = replace(SMALL, scope=scope, passes=passes)
    names = 3 if scope == "core" else 9  # of a layer b_k's is zero
    for index in set(range(names)) - {4}:

        def off(results, index=index):
            results[index] *= 1.001

        assert "times as far" in judged(problem, change=off).complaint, index


def test_a_tile_of_keys_that_is_dropped_is_seen_in_half_precision():
    problem = Problem(batch=1, seq_len=4096, d_model=64, heads=1, dtype="bf16")

    def drops(problem, inputs, weights):
        q, k, v = inputs
        kept = Inputs(q, k[:, :, :-64], v[:, :, :-64])
        return lambda: torch.nn.functional.scaled_dot_product_attention(*kept)

    backend = SimpleNamespace(
        name="drops", exactness="exact", context=impls.load("sdpa").context, prepare=drops
    )
    assert "times as far" in judged(problem, backend).complaint


def test_what_a_tile_of_queries_adds_to_gradients_of_keys_is_not_lost():
    problem = Problem(batch=1, seq_len=1024, d_model=32, heads=2, passes="backward")
    chosen = places(problem, SEEDS.places)
    tile = chosen.rows[3] // 16 * 16

    def lost(results):
        gradient = make_gradient(problem, CPU, SEEDS.first)
        write_gradient(gradient, problem, SEEDS.places)
        gradient[:, :, tile : tile + 16] = 0.0
        inputs = made_entries(problem, [0], SEEDS.values, SEEDS.first)
        output = impls.load("sdpa").prepare(problem, inputs, None)()
        results[1:] = torch.autograd.grad(output, list(inputs), gradient)[1:]

    assert "times as far" in judged(problem, "sdpa", change=lost).complaint


@pytest.mark.parametrize("what", ["query", "key", "value"])
def test_a_backend_that_copies_an_input_is_convicted(what):
    assert judged(SMALL, copies(what)).complaint


@pytest.mark.parametrize("remembers", [False, True])
@pytest.mark.parametrize("scope", ["core", "layer"])
def test_a_result_of_first_values_is_told_so(scope, remembers):
    verdict = judged(replace(SMALL, scope=scope), copies("", remembers))
    assert verdict.complaint == FROM_MEMORY


def test_approximate_results_may_be_off_and_of_others_nothing_is_known():
    verdict = judged(SMALL, exactness="approximate", change=scaled)
    assert (verdict.complaint, verdict.error_limit_ratio) == ("", None)
    assert verdict.error_ratio > 2
    assert judged(SMALL, exactness="other", change=scaled).error_ratio is None


def test_results_without_the_judged_numbers_are_refused():
    chosen = places(TRAINED, 0)
    right = [torch.ones(3, 4, 160, 8) for _ in range(3)]
    for results, words in (
        (right[:2], "wanted"),
        ([*right[:2], right[2][:, :2]], "wanted"),
        ([right[0] * float("nan"), *right[1:]], "a gradient has NaN"),
    ):
        with pytest.raises(BadResult, match=words):
            taken(TRAINED, results, chosen)
    verdict = Judge().judged(SMALL, SEEDS, [[1.0, 2.0]])
    assert "wanted" in verdict.complaint


def test_places_are_enough_few_and_drawn():
    wide = Problem(batch=9, seq_len=3000, d_model=1024, heads=4, scope="layer", passes="backward")
    for problem in (*PROBLEMS, wide):
        one, same, other = (places(problem, seed) for seed in (0, 0, 1))
        assert one == same
        heads = problem.heads if problem.scope == "core" else 1
        judged_rows = len(one.entries) * heads * len(one.rows)
        everything = len(one.entries) * heads * problem.seq_len
        assert min(PLACES, everything) <= judged_rows <= PLACES + len(one.entries) * heads
        assert len(one.entries) == min(2, problem.batch)
        assert list(one.rows) == sorted(set(one.rows))
        assert len(one.columns) <= COLUMNS
        assert (one == other) == (problem.seq_len == 1)


def test_the_judged_gradient_is_zero_but_in_the_judged_rows():
    gradient = make_gradient(TRAINED, CPU, 1)
    memory = gradient.data_ptr()
    write_gradient(gradient, TRAINED, 7)
    chosen = places(TRAINED, 7)
    entries, _, rows, _ = (sorted(set(one.tolist())) for one in gradient.nonzero().unbind(1))
    assert (entries, rows) == (list(chosen.entries), list(chosen.rows))
    assert gradient.data_ptr() == memory
