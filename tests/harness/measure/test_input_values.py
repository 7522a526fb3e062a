"""Inputs get new numbers in place, and each call of a block gets numbers of its own."""

from dataclasses import replace

import pytest
import torch

from attnbench.harness.cases.case import Case
from attnbench.harness.cases.costs import minimal_bytes
from attnbench.harness.measure import input_values
from attnbench.harness.measure.input_values import EachCall, InputValues
from attnbench.harness.measure.judge import Judge, Seeds, places, taken
from attnbench.harness.process.child import CaseEnded
from attnbench.impls.problem import Problem
from tests.harness.worker.configs import sampled

CPU = torch.device("cpu")
SMALL = Problem(batch=2, seq_len=40, d_model=32, heads=4)
PROBLEMS = [
    SMALL,
    replace(SMALL, passes="forward+backward", dtype="bf16"),
    replace(SMALL, passes="backward"),
    replace(SMALL, scope="layer"),
    replace(SMALL, scope="layer", kv_seq_len=24, dtype="fp16", passes="forward+backward"),
    replace(SMALL, kv_dtype="int8"),
    replace(SMALL, kv_dtype="fp8", page=16, dtype="bf16"),
    replace(SMALL, kv_heads=4, latent=24, d_k=12, rope=4),
    replace(SMALL, seq_len=3, prefix=16),
    replace(SMALL, sinks=True),
]
STAY = {"page_table", "w_uk", "w_uv"}


def copies(values):
    tensors = [*values.tensors.inputs.named().values()]
    tensors += [] if values.gradient is None else [values.gradient]
    return [tensor.detach().clone() for tensor in tensors]


def same(one, other):
    return [torch.equal(a, b) for a, b in zip(one, other, strict=True)]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_new_numbers_are_written_in_place_without_a_trace(problem):
    values = InputValues(problem, CPU, 0)
    named = values.tensors.inputs.named()
    before, places = copies(values), [tensor.data_ptr() for tensor in named.values()]
    values.draw(1)
    changed = [not one for one in same(copies(values), before)]
    if problem.passes == "backward":  # its graph holds the inputs
        assert changed == [False, False, False, True]
    else:
        assert changed[: len(named)] == [name not in STAY for name in named]
        assert all(changed[len(named) :])  # the gradient
    assert [tensor.data_ptr() for tensor in named.values()] == places
    assert values.written() == ""  # version counters do not move
    values.draw(0)
    assert all(same(copies(values), before))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_wide_scores_end_when_the_first_numbers_are_drawn_again(problem):
    values = InputValues(problem, CPU, 0)
    before = copies(values)
    values.widen()
    assert not all(same(copies(values), before))
    values.draw(0)
    assert all(same(copies(values), before))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_each_call_reads_other_numbers_and_the_last_one_those_of_the_seed(problem):
    values = InputValues(problem, CPU, 0)
    before, each, seen = copies(values), EachCall(values), []
    each._random.seed(1)  # in bf16 close factors may give equal numbers
    for _ in range(5):
        each(last=False)
        seen.append(copies(values))
        assert values.written() == ""
    pairs = [(one, other) for place, one in enumerate(seen) for other in seen[:place]]
    assert not any(all(same(one, other)) for one, other in [*pairs, *((s, before) for s in seen)])
    each(last=True)
    assert all(same(copies(values), before))
    each(last=False)
    each.restore()
    assert all(same(copies(values), before))


@pytest.mark.parametrize("problem", PROBLEMS[:5])
def test_a_write_is_noticed_and_named(problem):
    values = InputValues(problem, CPU, 0)
    name = "key" if values.tensors.inputs.key is not values.tensors.inputs.query else "query"
    with torch.no_grad():
        values.tensors.inputs.key[..., 5, 3] += 0.25
    assert name in values.written()
    assert values.written() == ""  # said once


def test_a_result_that_is_kept_within_a_block_is_told_from_a_new_one_in_bf16():
    problem = Problem(batch=1, seq_len=4096, d_model=64, heads=1, dtype="bf16")
    values = InputValues(problem, CPU, 0)
    values.draw(1)
    each, attend = EachCall(values), torch.nn.functional.scaled_dot_product_attention
    each(last=False)
    kept = attend(*values.tensors.inputs)
    each(last=True)
    new = attend(*values.tensors.inputs)
    judge, seeds = Judge(), Seeds(values=1, first=0, places=2)

    def judged(result):
        return judge.judged(problem, seeds, taken(problem, [result], places(problem, 2)))

    assert judged(kept).complaint
    assert not judged(new).complaint


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
def timed(monkeypatch, tmp_path):
    """What a worker says of three blocks of the backends, by case."""
    monkeypatch.setattr(input_values, "cpu_cache_bytes", lambda _: CACHE_BYTES)
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path))
    (tmp_path / "reading.py").write_text(BACKEND.format(how=""))
    (tmp_path / "keeping.py").write_text(BACKEND.format(how=".mT.contiguous().mT"))

    def time(names, problem, *, cold=True):
        cases = [Case(backend=name, problem=problem) for name in names]
        return sampled(cases, blocks=3, calls=5, cold_caches=cold)[1].values()

    return time


@pytest.fixture
def memory(monkeypatch):
    """Where the keys were, for each time that other copies took their turn."""
    seen: list[int] = []
    give = input_values.Turns._give

    def noted(turns, copy):
        give(turns, copy)
        seen.append(turns._tensors[0].data_ptr())

    monkeypatch.setattr(input_values.Turns, "_give", noted)
    return seen


def test_calls_read_other_memory_until_they_have_read_twice_the_caches(timed, memory):
    said = timed(["reading", "fused"], STEP)
    assert [len(one) for one in said] == [4, 4]
    (count,) = {warm["kv_copies"] for warm, *_ in said}
    assert count * minimal_bytes(STEP) >= 2 * CACHE_BYTES > (count - 1) * minimal_bytes(STEP)
    assert len(set(memory)) == count
    last_block = memory[-7:]  # before each of 6 calls, the first apart, and at the end of the block
    assert len(set(last_block[1:6])) == min(count, 5)


def test_a_call_that_reads_what_it_made_of_its_keys_before_is_refused(timed):
    with pytest.raises(CaseEnded, match=r"set plan\.caches to warm") as ended:
        timed(["keeping"], STEP)
    assert ended.value.status == "unsupported"


@pytest.mark.parametrize(
    ("names", "change"),
    [
        (("kv_cache", "kv_cache:blocks"), {"kv_dtype": "int8"}),
        (("kv_cache",), {"kv_dtype": "fp8", "page": 16, "dtype": "bf16"}),
        (("mla:absorbed",), {"kv_heads": 4, "latent": 24, "d_k": 12, "rope": 4}),
        (("hf:sdpa",), {"causal": True, "causal_align": "bottom_right", "mask": "none"}),
    ],
)
def test_stored_keys_take_turns_with_their_scales_and_as_one_tensor(timed, names, change):
    assert all(warm["kv_copies"] > 1 for warm, *_ in timed(names, replace(STEP, **change)))


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
    timed, memory, change, cold
):
    said = timed(["fused"], replace(STEP, **change), cold=cold)
    assert [warm["kv_copies"] for warm, *_ in said] == [None]
    assert not memory


def test_one_copy_does_where_a_call_reads_more_than_the_caches_hold(timed, monkeypatch):
    monkeypatch.setattr(input_values, "cpu_cache_bytes", lambda _: 1_000)
    said = timed(["keeping"], STEP)  # whatever it reads is not in them
    assert [warm["kv_copies"] for warm, *_ in said] == [1]


def test_after_a_block_only_what_its_calls_have_had_is_written_and_the_next_calls_get_others(
    timed, memory
):
    """Writing all copies, 600 MiB beside a cache of 300, took longer than the block, by the clock
    of the parent: honest cases were errors.
    """
    values = InputValues(STEP, torch.device("cpu"), 0)
    turns = values.turns = input_values.turns_of(STEP, values.tensors.inputs)
    assert turns.count > 5
    own, *others = turns._memory
    each = EachCall(values)
    for left in (2, 1, 0):
        each(last=not left)
    taken = memory[-3:]
    each.restore()
    others[-1][0].zero_()  # of no call: nobody looks at it
    turns.renew_taken()
    same = [torch.equal(one[0], own[0]) for one in others]
    assert same == [True] * (turns.count - 2) + [False]
    each(last=True)
    assert memory[-1] not in taken
    turns.renew()
    assert torch.equal(others[-1][0], own[0])
