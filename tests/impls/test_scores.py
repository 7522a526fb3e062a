"""Softcap, sinks and chunks together, with masks and shared heads: every backend that computes them
against the reference, on problems drawn at random.
"""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch

from attnbench.harness.measure.correctness import CorrectnessCheck, widen
from attnbench.harness.measure.prepared_call import make_tensors, prepare_call
from attnbench.impls import Problem, flex, load, make_inputs, missing
from attnbench.impls.shared.mask_tensors import given_mask
from tests.budget import first
from tests.impls.conftest import complaints

CPU = torch.device("cpu")


def long(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.long)


def drawn(seed: int) -> Problem:
    """With one of softcap, sinks and chunks at least."""
    random = Random(seed)
    kv_heads, causal = random.choice((1, 2, 3)), random.random() < 0.6
    length = random.randint(1, 60)
    mask = random.choice(("none", "local", "chunked", "padding", "random"))
    softcap, sinks = random.choice(((0.0, True), (1.0, False), (1.0, True), (20.0, True)))
    more: dict[str, Any] = {}
    if mask in ("local", "chunked"):
        more["window"] = random.randint(1, 20)
    if causal and random.random() < 0.5:
        more["kv_seq_len"] = length + random.randint(1, 30)
        more["causal_align"] = random.choice(("top_left", "bottom_right"))
    if mask == "chunked" and random.random() < 0.3:
        softcap, sinks = 0.0, False
    return Problem(
        batch=random.randint(1, 3),
        seq_len=length,
        heads=kv_heads * random.choice((1, 2)),
        kv_heads=kv_heads,
        d_model=32,
        d_k=random.choice((4, 16)),
        d_v=random.choice((4, 24)),
        dtype=random.choice(("fp32", "bf16", "fp16")),
        causal=causal,
        mask=mask,
        softcap=softcap,
        sinks=sinks,
        passes="forward+backward",
        scope="core" if more.get("kv_seq_len") else random.choice(("core", "layer", "block")),
        **more,
    )


@pytest.mark.parametrize("count", first(1, [12, 40]))
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", ["naive", "fused", long("hf:eager")])
def test_backend_is_as_close_as_the_same_dtype_reference(name: str, wide: bool, count: int) -> None:
    """Also with scores beyond the cap and beyond what exp can hold."""
    if why := missing(name):
        pytest.skip(why)
    assert errors(name, map(drawn, itertools.count()), count, wide=wide) == [""] * count


@pytest.mark.long
def test_the_compiler_keeps_softcap_and_sinks() -> None:
    if why := load("compiled").unavailable(CPU):
        pytest.skip(why)
    assert errors("compiled", map(drawn, range(2)), 2) == [""] * 2


@pytest.mark.long
@pytest.mark.parametrize("name", ["flex", "hf:flex_attention"])
def test_flex_attention_is_as_close_forward(name: str) -> None:
    """Without sinks, which it has on a GPU only."""
    if why := missing(name) or load(name).unavailable(CPU):
        pytest.skip(why)
    plain = (replace(drawn(seed), passes="forward", sinks=False) for seed in itertools.count())
    assert errors(name, (one for one in plain if one.softcap), 2) == [""] * 2


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["naive", "fused", "flex", "hf:eager", "triton"])
def test_backend_is_as_close_on_cuda(name: str) -> None:
    of_16 = (replace(drawn(seed), d_k=16, d_v=16) for seed in itertools.count())
    assert errors(name, of_16, 12, device="cuda") == [""] * 12


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("count", first(1, [5, 20]))
def test_flex_attention_gives_a_sink_its_share(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not compiled: compiled it gives the log-sum-exp on a GPU only."""
    monkeypatch.setattr(flex, "compiled", lambda function: function)
    monkeypatch.setattr(flex, "why_not", lambda problem, device, variant: None)
    forward = (replace(drawn(seed), passes="forward") for seed in itertools.count())
    assert errors("flex", (one for one in forward if one.sinks), count) == [""] * count


def errors(
    name: str, problems: Iterable[Problem], count: int, *, wide: bool = True, device: str = "cpu"
) -> list[str]:
    """Of the first `count` problems that the backend computes; "" where it is right."""
    found = ((one, complaints(one, [name], 0, device, wide=wide)) for one in problems)
    computed = (f"{said[name]}: {one}" if said[name] else "" for one, said in found if said)
    return list(itertools.islice(computed, count))


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(("axis", "value"), [("softcap", 30.0), ("sinks", True)])
def test_a_backend_that_leaves_it_out_is_found(axis: str, value: Any, dtype: Any) -> None:
    """A cap by wide scores; a sink also over 1 024 keys in bf16."""
    plain = Problem(batch=1, seq_len=1024, d_model=64, heads=4, dtype=dtype)
    problem, wide = replace(plain, **{axis: value}), axis == "softcap"
    tensors = make_tensors(problem, CPU, 0)
    if wide:
        widen(problem, tensors.inputs, 0)
    check = CorrectnessCheck(problem, *tensors, 0, wide=wide)
    output = load("sdpa").prepare(plain, tensors.inputs, None)()
    assert "as far from the exact result" in check.check(output, ()).complaint


@pytest.mark.parametrize(("dtype", "factor"), [("fp32", 1.001), ("bf16", 1.2), ("fp32", 0.0)])
def test_a_wrong_gradient_of_a_single_sink_is_found(dtype: Any, factor: float) -> None:
    """Which is a sum that may nearly cancel, and has a higher floor for that."""
    problem = Problem(
        batch=1, seq_len=64, d_model=16, heads=1, dtype=dtype, sinks=True, passes="forward+backward"
    )
    tensors = make_tensors(problem, CPU, 0)
    check = CorrectnessCheck(problem, *tensors, 0)
    prepared = prepare_call(problem, load("naive"), tensors, check.grad_output)
    with prepared.in_force():
        output, (*others, of_sinks) = prepared.result()
    assert not check.check(output, (*others, of_sinks)).complaint
    found = check.check(output, (*others, of_sinks * factor)).complaint
    assert "as far from the exact result" in found


def test_the_gradient_of_the_keys_bias_may_be_off_by_roundings_of_its_terms() -> None:
    """Without a cap it is zero, with one of 50 a ten-thousandth of others: kernels that compute the
    weights again were up to 4.6 times as far off as the textbook.
    """
    problem = Problem(
        batch=1, seq_len=64, d_model=64, heads=4, softcap=50.0, passes="backward", scope="layer"
    )
    tensors = make_tensors(problem, CPU, 0)
    check = CorrectnessCheck(problem, *tensors, 0)
    prepared = prepare_call(problem, load("naive"), tensors, check.grad_output)
    with prepared.in_force():
        output, gradients = prepared.result()
    largest = max(float(one.norm()) for one in gradients)
    place = 1 + [*tensors.weights.__dataclass_fields__].index("b_k")
    for error, passes in ((2.0**-19 * largest, True), (2.0**-16 * largest, False)):
        off = gradients[place] + error / gradients[place].numel() ** 0.5
        changed = (*gradients[:place], off, *gradients[place + 1 :])
        assert (check.check(output, changed).complaint == "") is passes


@pytest.mark.parametrize("name", ["naive", "fused"])
def test_weights_are_those_of_the_output(name: str) -> None:
    """Of one key each: beside a sink they sum to less than 1. A given mask knows the cap, too."""
    for seed in range(20):
        p = replace(drawn(seed), passes="forward", scope="core", dtype="fp32")
        inputs, backend = make_inputs(p, CPU, seed), load(name)
        output, weights = backend.prepare(p, inputs, None)(), backend.attention_weights(p, inputs)
        values = inputs.value.repeat_interleave(p.heads // p.kv_heads, 1)
        assert torch.allclose(weights @ values, output, atol=1e-5)
        if p.sinks:
            assert float(weights.sum(-1).max()) < 1
        else:
            all_pairs = torch.ones(p.seq_len, p.kv_seq_len, dtype=torch.bool)
            mask, empty = given_mask(all_pairs, p, torch.float32)
            found = backend.under_mask(p, *inputs, mask).masked_fill(empty, 0.0)
            assert torch.allclose(found, output, atol=1e-5)
