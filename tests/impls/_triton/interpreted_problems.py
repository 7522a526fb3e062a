"""The kernels on whole problems, through the backend and the harness's correctness check."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from unittest.mock import patch

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnbench.harness.measure.correctness import CorrectnessCheck
from attnbench.impls import Problem, make_inputs, make_weights
from attnbench.impls import triton as backend
from attnbench.impls._triton import launch
from attnbench.impls._triton.configs import BANDS, KERNELS, Config
from attnbench.impls.axes.lengths import canonical
from attnbench.impls.backend import leaves
from attnbench.impls.layer import as_call
from attnbench.impls.problem import Dtype
from tests.gpu_day.kernels import ran
from tests.impls._triton.changed import changed_kernels
from tests.impls._triton.interpreter import CPU, DESCRIBED, SMALL, Configs, launches, main, poisoned
from tests.impls.conftest import BOTTOM_RIGHT, MASKED, PROBLEMS

COMPUTED_MASKS = ("none", "padding", *BANDS)


def checked(problem: Problem, configs: Configs = SMALL) -> dict[str, Any]:
    """The harness's own correctness check of output and gradients."""
    p = problem if problem.page else replace(problem, passes="forward+backward")
    inputs = make_inputs(p, CPU, seed=1)
    weights = make_weights(p, CPU, seed=2) if p.scope == "layer" else None
    check = CorrectnessCheck(p, inputs, weights, seed=3)
    with poisoned():
        output = as_call(p, inputs, weights, backend.attend(p, inputs, configs), fills=True)()
        gradients: tuple[torch.Tensor, ...] = ()
        if p.backward:
            gradients = torch.autograd.grad(output, leaves(inputs, weights), check.grad_output)
    result = check.check(output, gradients)
    return {"ratio": result.error_ratio, "complaint": result.complaint}


def prepared() -> dict[str, Any]:
    """What `prepare` chooses, and whether its call is right."""
    problem = Problem(batch=1, seq_len=150, d_model=32, heads=2)
    inputs = make_inputs(problem, CPU, seed=1)
    call: Any = backend.prepare(problem, inputs, None, variant="")
    complaint = CorrectnessCheck(problem, inputs, None, seed=3).check(call(), ()).complaint
    return {"complaint": complaint, **call.facts}


def noted() -> list[str]:
    """The kernels that a day with a GPU would note, of a small problem."""
    return [f"{kernel} {config}" for kernel, config in ran(CPU, 80, [("fp32", 8, 9)], keys=20)]


def shared_list(dtype: Dtype, every: str) -> dict[str, Any]:
    """By pointers, and with descriptors; with the launches that used descriptors. Of all problems,
    or every third.
    """
    some = [*PROBLEMS.items()][int(every) - 1 :: int(every)]
    found = {name: checked(replace(p, dtype=dtype)) for name, p in some}
    for name, p in some:
        with launches() as made:
            result = checked(replace(p, dtype=dtype), DESCRIBED)
        described = [one.config.descriptors for one in made]
        found[f"{name} described"] = result | {"described": described}
    return found


def masks(dtype: Dtype, every: str) -> dict[str, Any]:
    """The shared list of masked problems, as far as the kernels compute them; or every third."""
    named = [(name, p) for name, p in MASKED.items() if p.mask in COMPUTED_MASKS]
    return {
        f"{p.mask} mask, {name}": checked(replace(p, dtype=dtype))
        for name, p in named[int(every) // 2 :: int(every)]
    }


def drawn_shapes(mask: str, count: str) -> dict[str, Any]:
    """Shapes drawn by hypothesis, the same every time; it shrinks a failing one for the report.

    With the worst error, and how many problems there were, with a softcap and with sinks.
    """
    found: dict[str, Any] = {"ratio": 0.0, "examples": 0, "softcap": 0, "sinks": 0}

    @settings(
        max_examples=int(count),
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(shapes(ragged=True) if mask == "ragged" else shapes(mask))
    def holds(drawn: tuple[Problem, Configs]) -> None:
        result = checked(*drawn)
        assert not result["complaint"], (drawn, result)
        found["ratio"] = max(found["ratio"], result["ratio"])
        found["examples"] += 1
        for name in ("softcap", "sinks"):
            found[name] += bool(getattr(drawn[0], name))

    holds()
    return found


@st.composite
def shapes(
    draw: st.DrawFn, mask: str | Literal["paged"] = "none", *, ragged: bool = False
) -> tuple[Problem, Configs]:
    page = 0
    if mask == "paged":
        page = draw(st.sampled_from((1, 7, 16, 48)))
        mask = draw(st.sampled_from(COMPUTED_MASKS))
    block = st.sampled_from((16, 32))
    # the second kind: widths that fit descriptors, in any dtype
    width = st.integers(1, 40) | st.sampled_from((8, 16, 24, 32, 40))
    causal = draw(st.booleans())
    # what the interpreter does in a second or two
    batch, kv_heads, group = draw(
        st.sampled_from(((1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (1, 2, 2), (2, 1, 2)))
    )
    if ragged:
        mask = draw(st.sampled_from(("none", "local"))) if causal else "none"
        sequence = st.tuples(st.integers(1, 40), st.integers(0, 40))
        sizes: dict[str, Any] = {
            "batch": 1,
            "lengths": canonical(
                (n, n + more) for n, more in draw(st.lists(sequence, min_size=1, max_size=3))
            ),
        }
    else:
        seq_len = draw(st.integers(1, 70))
        kv_seq_len = draw(st.integers(1, 70))
        if mask in BANDS:  # which place each query at a key
            kv_seq_len = max(seq_len, kv_seq_len) if causal else seq_len
        sizes = {
            "batch": batch,
            "seq_len": seq_len,
            "kv_seq_len": kv_seq_len,
            "causal_align": draw(st.sampled_from(("top_left", "bottom_right"))) if causal else "",
        }
    problem = Problem(
        **sizes,
        d_model=1,
        heads=kv_heads * group,
        kv_heads=kv_heads,
        d_k=draw(width),
        d_v=draw(width),
        dtype=draw(st.sampled_from(("fp32", "bf16", "fp16"))),
        causal=causal,
        mask=mask,
        window=draw(st.integers(1, 40) | st.sampled_from((16, 32, 2**40))) if mask in BANDS else 0,
        softcap=draw(st.sampled_from((0.0, 0.0, 0.5, 5.0, 50.0))),
        sinks=draw(st.booleans()),
        page=page,
    )
    return problem, {
        kernel: Config(draw(block), draw(block), 4, 1, descriptors=draw(st.booleans()))
        for kernel in KERNELS
    }


NARROW: dict[str, Any] = {"batch": 1, "d_model": 1, "d_k": 16, "d_v": 16}
GROUPED = Problem(seq_len=40, heads=4, kv_heads=2, causal=True, **NARROW)
SHIFTED = Problem(seq_len=20, kv_seq_len=50, heads=1, dtype="bf16", **BOTTOM_RIGHT, **NARROW)
PLAIN = Problem(seq_len=70, heads=1, dtype="bf16", **NARROW)
WINDOW = Problem(seq_len=90, heads=1, dtype="bf16", causal=True, mask="local", window=50, **NARROW)
CHUNKS = Problem(seq_len=90, heads=1, dtype="bf16", mask="chunked", window=45, **NARROW)
CAPPED = Problem(seq_len=40, heads=2, dtype="bf16", softcap=1.0, sinks=True, **NARROW)
RAGGED = Problem(
    batch=1, lengths="q70_q40s60", d_model=1, heads=2, d_k=16, d_v=16, dtype="bf16", causal=True
)
PAGED = Problem(
    seq_len=20,
    kv_seq_len=70,
    heads=2,
    dtype="bf16",
    page=16,
    **BOTTOM_RIGHT,
    **NARROW | {"batch": 2},
)
# By what it breaks: a text of the kernels, its replacement, and a problem on which the check must
# notice it.
MUTATIONS = {
    "a tile of values is dropped": (
        "p = p.to(v_tile.dtype)",
        "p = (p if part != 1 else tl.where(key + BLOCK_KV < last, p, 0.0)).to(v_tile.dtype)",
        PLAIN,
    ),
    "the gradient of q lacks a tile of keys": (
        "ds = ds.to(k_tile.dtype)",
        "ds = (ds if part != 1 else tl.where(key + BLOCK_KV < last, ds, 0.0)).to(k_tile.dtype)",
        PLAIN,
    ),
    "the last key is dropped": ("valid = keys < n_kv", "valid = keys < n_kv - 1", PLAIN),
    "no query sees itself": (
        "seen = keys <= positions",
        "seen = keys < positions",
        SHIFTED,
    ),
    "a query sees the next key": (
        "seen = keys <= positions",
        "seen = keys - 1 <= positions",
        SHIFTED,
    ),
    "whole blocks begin too late": ("first_row + offset + 1,", "first_row + offset + 2,", SHIFTED),
    "the scale is wrong": ("tl.exp2(qk * scale_log2", "tl.exp2(qk * 1.05 * scale_log2", PLAIN),
    "old sums are not rescaled": ("acc * alpha[:, None]", "acc", PLAIN),
    "a row is not written": ("rows < n_q, acc", "(rows < n_q) & (rows != 5), acc", PLAIN),
    "the window is a key too wide": (
        "else positions - window",
        "else positions - window - 1",
        WINDOW,
    ),
    "edge blocks of the window are taken for whole ones": (
        "inner = tl.maximum(band_start(last_row + offset",
        "inner = tl.maximum(band_start(first_row + offset",
        WINDOW,
    ),
    "a chunk has the next one's first query": (
        "* window - 1 if BAND",
        "* window if BAND",
        CHUNKS,
    ),
    "blocks behind the chunk are forgotten": ("edges = before + behind", "edges = before", CHUNKS),
    "the softcap has no gradient": ("ds * (1.0 - qk * qk)", "ds", CAPPED),
    "the softcap is another": ("scores * cap_factor\n", "scores * cap_factor * 1.1\n", CAPPED),
    "the sink has no weight": ("l_i += 1.0", "l_i += 0.0", CAPPED),
    "a sequence's last key is dropped": ("< n_q, n_kv, 0)", "< n_q, n_kv - 1, 0)", RAGGED),
    "a sequence's values are those of the first": (
        "v_strides, pool, kv_head, kv_first",
        "v_strides, pool, kv_head, 0 * kv_first",
        RAGGED,
    ),
    "the log-sum-exp is that of the first": ("lse_rows + q_first\n\n", "lse_rows\n\n", RAGGED),
    "a page is that of the first keys": ("rows // PAGE", "rows * 0", PAGED),
    "a key's place in its page is the first": ("rows % PAGE", "rows * 0", PAGED),
    "pages are those of the first sequence": ("batch * tl.cdiv", "0 * tl.cdiv", PAGED),
    "delta is forgotten": ("dp - delta_tile[:, None]", "dp", PLAIN),
    "the gradient of q is not scaled": ("dq_tile * scale, D_K", "dq_tile, D_K", PLAIN),
    "a head of the group is forgotten": (
        "range(group * count)",
        "range((group - part) * count)",
        GROUPED,
    ),
    "the last queries are forgotten": (
        "behind = tl.maximum(end - ",
        "behind = 0 * tl.maximum(end - ",
        PLAIN,
    ),
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
        "x.load([batch.to(tl.int32)",
        "x.load([batch.to(tl.int32) * 0",
        replace(GROUPED, batch=2),
    ),
    "a descriptor reads one row on": (", start, 0])", ", start + 1, 0])", PLAIN),
}


def replaced(text: str, *, old: str, new: str) -> str:
    return text.replace(old, new)


def canaries(every: str) -> dict[str, Any]:
    """The complaint about each broken kernel, or every fourth; "": the check noticed nothing.
    `intact`: those about the kernels as they are, on the same problems.
    """
    mutations = [(name, mutation, SMALL) for name, mutation in MUTATIONS.items()]
    mutations += [(name, mutation, DESCRIBED) for name, mutation in MUTATIONS_DESCRIBED.items()]
    mutations = mutations[:: int(every)]
    problems = {(mutation[2], configs is SMALL): configs for _, mutation, configs in mutations}
    intact = [checked(one, configs)["complaint"] for (one, _), configs in problems.items()]
    found: dict[str, Any] = {"intact": intact}
    with TemporaryDirectory() as folder:
        for number, (name, (old, new, problem), configs) in enumerate(mutations):
            broken = changed_kernels(
                Path(folder) / str(number), f"broken_{number}", partial(replaced, old=old, new=new)
            )
            with patch.object(launch, "kernels", broken):
                found[name] = checked(problem, configs)["complaint"]
    return found


if __name__ == "__main__":
    main(globals())
