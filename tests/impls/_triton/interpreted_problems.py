"""The kernels on whole problems, through the backend and the harness's correctness check."""

from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnbench.harness.measure.correctness import CorrectnessCheck
from attnbench.impls import Problem, make_inputs, make_weights
from attnbench.impls import triton as backend
from attnbench.impls._triton import launch
from attnbench.impls._triton.configs import Config
from attnbench.impls.backend import leaves
from attnbench.impls.layer import as_call
from attnbench.impls.problem import Dtype
from tests.impls._triton.interpreter import CPU, DESCRIBED, SMALL, Configs, launches, main, poisoned
from tests.impls.conftest import BOTTOM_RIGHT, MASKED, PROBLEMS


def checked(problem: Problem, configs: Configs = SMALL) -> dict[str, Any]:
    """The harness's own correctness check of output and gradients."""
    p = replace(problem, passes="forward+backward")
    inputs = make_inputs(p, CPU, seed=1)
    weights = make_weights(p, CPU, seed=2) if p.scope == "layer" else None
    check = CorrectnessCheck(p, inputs, weights, seed=3)
    with poisoned():
        output = as_call(p, inputs, weights, backend.attend(p, configs, backend.key_mask(p, CPU)))()
        assert check.grad_output is not None
        gradients = torch.autograd.grad(output, leaves(inputs, weights), check.grad_output)
    result = check.check(output, gradients)
    return {"ratio": result.error_ratio, "complaint": result.complaint}


def shared_list(dtype: Dtype) -> dict[str, Any]:
    """By pointers, and with descriptors; with the launches that used descriptors."""
    found = {name: checked(replace(p, dtype=dtype)) for name, p in PROBLEMS.items()}
    for name, p in PROBLEMS.items():
        with launches() as made:
            result = checked(replace(p, dtype=dtype), DESCRIBED)
        described = [one.config.descriptors for one in made]
        found[f"{name} described"] = result | {"described": described}
    return found


def padded_batches() -> dict[str, Any]:
    """Sequences of unequal length, as the harness requests them."""
    named = {name: p for name, p in MASKED.items() if p.mask in backend.MASKS}
    return {
        f"{name} {dtype}": checked(replace(p, dtype=dtype))
        for name, p in named.items()
        for dtype in ("fp32", "bf16")
    }


def layers() -> dict[str, Any]:
    return {
        name: checked(replace(PROBLEMS[name], scope="layer"))
        for name in ("odd", "grouped", "empty_rows")
    }


def drawn_shapes() -> dict[str, Any]:
    """Shapes drawn by hypothesis, the same every time; it shrinks a failing one for the report."""
    worst = {"ratio": 0.0, "examples": 0}

    @settings(
        max_examples=32,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(shapes())
    def holds(drawn: tuple[Problem, Configs]) -> None:
        result = checked(*drawn)
        assert not result["complaint"], (drawn, result)
        worst["ratio"] = max(worst["ratio"], result["ratio"])
        worst["examples"] += 1

    holds()
    return worst


@st.composite
def shapes(draw: st.DrawFn) -> tuple[Problem, Configs]:
    block = st.sampled_from((16, 32))
    # the second kind: widths that fit descriptors, in any dtype
    width = st.integers(1, 40) | st.sampled_from((8, 16, 24, 32, 40))
    causal = draw(st.booleans())
    kv_heads = draw(st.integers(1, 2))
    problem = Problem(
        batch=draw(st.integers(1, 2)),
        seq_len=draw(st.integers(1, 70)),
        kv_seq_len=draw(st.integers(1, 70)),
        d_model=1,
        heads=kv_heads * draw(st.integers(1, 2)),
        kv_heads=kv_heads,
        d_k=draw(width),
        d_v=draw(width),
        dtype=draw(st.sampled_from(("fp32", "bf16", "fp16"))),
        causal=causal,
        causal_align=draw(st.sampled_from(("top_left", "bottom_right"))) if causal else "",
    )
    forward, grad_q, grad_kv = (
        Config(draw(block), draw(block), 4, 1, descriptors=draw(st.booleans())) for _ in range(3)
    )
    return problem, (forward, grad_q, grad_kv)


NARROW: dict[str, Any] = {"batch": 1, "d_model": 1, "d_k": 16, "d_v": 16}
GROUPED = Problem(seq_len=40, heads=4, kv_heads=2, causal=True, **NARROW)
SHIFTED = Problem(seq_len=20, kv_seq_len=50, heads=1, dtype="bf16", **BOTTOM_RIGHT, **NARROW)
PLAIN = Problem(seq_len=70, heads=1, dtype="bf16", **NARROW)
# By what it breaks: a text of the kernels, its replacement, and a problem on which the check must
# notice it.
MUTATIONS = {
    "a tile of keys is dropped": (
        "in tl.range(first, last,",
        "in tl.range(first, last if EDGE else last - BLOCK_KV,",
        PLAIN,
    ),
    "the gradient of q lacks a tile of keys": (
        "in range(first, last,",
        "in range(first, last if EDGE else last - BLOCK_KV,",
        PLAIN,
    ),
    "the last key is dropped": ("valid = keys < n_kv", "valid = keys < n_kv - 1", PLAIN),
    "no query sees itself": (
        "keys[None, :] <= (rows + offset)[:, None]",
        "keys[None, :] < (rows + offset)[:, None]",
        SHIFTED,
    ),
    "a query sees the next key": ("keys[None, :] <= (rows", "keys[None, :] - 1 <= (rows", SHIFTED),
    "whole blocks begin too late": ("first_row + offset + 1", "first_row + offset + 2", SHIFTED),
    "the scale is wrong": ("tl.exp2(qk * scale_log2", "tl.exp2(qk * 1.05 * scale_log2", PLAIN),
    "old sums are not rescaled": ("acc * alpha[:, None]", "acc", PLAIN),
    "a row is not written": ("rows < n_q, acc", "(rows < n_q) & (rows != 5), acc", PLAIN),
    "delta is forgotten": ("dp - delta_tile[:, None]", "dp", PLAIN),
    "the gradient of q is not scaled": ("dq_tile * (scale_log2 * LN_2)", "dq_tile", PLAIN),
    "a head of the group is forgotten": (
        "range(group * edges)",
        "range((group - 1) * edges)",
        GROUPED,
    ),
    "the last queries are forgotten": ("(full_end < n_q), 1, 0)", "(full_end < n_q), 0, 0)", PLAIN),
    "the first queries are forgotten": (
        "first = tl.maximum(tile",
        "first = BLOCK_Q + tl.maximum(tile",
        GROUPED,
    ),
}
MUTATIONS_DESCRIBED = {
    "a descriptor reads another head": (
        "head.to(tl.int32), start",
        "head.to(tl.int32) * 0, start",
        GROUPED,
    ),
    "a descriptor reads another batch entry": (
        "[batch.to(tl.int32)",
        "[batch.to(tl.int32) * 0",
        replace(GROUPED, batch=2),
    ),
    "a descriptor reads one row on": (", start, 0])", ", start + 1, 0])", PLAIN),
}


def canaries() -> dict[str, Any]:
    """The complaint about each broken kernel; "" means that the check noticed nothing."""
    text = Path(str(launch.kernels.__file__)).read_text()
    problems = (PLAIN, SHIFTED, GROUPED, replace(GROUPED, batch=2))
    intact = [
        checked(problem, configs)["complaint"]
        for problem in problems
        for configs in (SMALL, DESCRIBED)
    ]
    found: dict[str, Any] = {"intact": intact}
    mutations = [(name, mutation, SMALL) for name, mutation in MUTATIONS.items()]
    mutations += [(name, mutation, DESCRIBED) for name, mutation in MUTATIONS_DESCRIBED.items()]
    with TemporaryDirectory() as folder:
        for number, (name, (old, new, problem), configs) in enumerate(mutations):
            assert text.count(old) >= 1, f"{old!r} is no longer in the kernels"
            # A file, because Triton reads the source of its kernels.
            path = Path(folder) / f"broken_{number}.py"
            path.write_text(text.replace(old, new, 1))
            spec = spec_from_file_location(path.stem, path)
            broken = module_from_spec(spec)
            spec.loader.exec_module(broken)
            with patch.object(launch, "kernels", broken):
                found[name] = checked(problem, configs)["complaint"]
    return found


if __name__ == "__main__":
    main(globals())
