"""Softcap, sinks and chunks together, with masks and shared heads: every backend that computes them
against the reference, on 40 problems drawn at random.
"""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch

from attnbench.harness.measure.correctness import CorrectnessCheck, widen
from attnbench.harness.measure.prepared_call import make_tensors, prepare_call
from attnbench.impls import Problem, load, missing

CPU = torch.device("cpu")
BACKENDS = ("naive", "fused")


def drawn(seed: int) -> Problem:
    """With one of softcap, sinks and chunks at least."""
    random = Random(seed)
    kv_heads, causal, length = (
        random.choice((1, 2, 3)),
        random.random() < 0.6,
        random.randint(1, 60),
    )
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


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", BACKENDS)
def test_backend_is_as_close_as_the_same_dtype_reference(name: str, wide: bool) -> None:
    """Also with scores beyond the cap and beyond what exp can hold."""
    if why := missing(name):
        pytest.skip(why)
    backend = load(name)
    for seed in range(40):
        problem = drawn(seed)
        assert backend.why_not(problem, CPU) is None
        tensors = make_tensors(problem, CPU, seed)
        if wide:
            widen(problem, tensors.inputs, seed)
        check = CorrectnessCheck(problem, *tensors, seed, wide=wide)
        with backend.context(problem):
            found = check.check(
                *prepare_call(problem, backend, tensors, check.grad_output).result()
            )
        assert not found.complaint, (found.complaint, problem)


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


def test_backends_that_do_not_compute_an_axis_refuse_it_in_a_line() -> None:
    plain = Problem(batch=1, seq_len=8, d_model=16, heads=2)
    sdpa = load("sdpa")
    assert sdpa.why_not(replace(plain, softcap=50.0), CPU) == "does not compute softcap 50.0"
    assert sdpa.why_not(replace(plain, sinks=True), CPU) == "does not compute sinks"
