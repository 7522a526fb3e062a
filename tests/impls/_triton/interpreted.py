"""Runs our Triton kernels in Triton's interpreter and prints what came out as JSON: `python -m
tests.impls._triton.interpreted CHECK`.

A process of its own, since the interpreter is chosen for good when triton is first imported. Each
CHECK is a function below; what it returns is judged in test_triton.py.
"""

import gc
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

os.environ["TRITON_INTERPRET"] = "1"  # before anything imports triton

import numpy as np
import torch
import triton.language as tl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from triton.runtime import interpreter

from attnbench.harness.measure.correctness import Gate, leaves
from attnbench.impls import Problem, make_inputs, make_weights
from attnbench.impls import triton as backend
from attnbench.impls._triton import launch as _triton_launch
from attnbench.impls._triton.configs import Config
from attnbench.impls._triton.op import attention
from attnbench.impls.layer import as_call
from attnbench.impls.problem import Dtype
from tests.impls.conftest import MASKED, PROBLEMS
from tests.impls.peak_formulas.test_peak_bytes import peak

CPU = torch.device("cpu")
SMALL = (
    Config(32, 32, 4, 1),
    Config(32, 32, 4, 1),
    Config(32, 32, 4, 1),
)  # several tiles even of short sequences
DESCRIBED = (
    replace(SMALL[0], descriptors=True, specialize=True),
    *(replace(config, descriptors=True) for config in SMALL[1:]),
)


def mend_bf16() -> None:
    """The interpreter keeps bf16 as 16-bit integers: it cuts where it should round, and multiplies
    matrices of those integers.
    """
    builder = interpreter.InterpreterBuilder
    cast, dot = builder.cast_impl, builder.create_dot

    def rounding_cast(self: Any, source: Any, to: Any) -> Any:
        if (source.dtype.scalar, to.scalar) != (tl.float32, tl.bfloat16):
            return cast(self, source, to)
        rounded = torch.from_numpy(np.ascontiguousarray(source.data)).bfloat16()
        return interpreter.TensorHandle(
            rounded.view(torch.int16).numpy().view(np.uint16), tl.bfloat16
        )

    def widened(self: Any, operand: Any) -> Any:
        return cast(self, operand, tl.float32) if operand.dtype.scalar == tl.bfloat16 else operand

    builder.cast_impl = rounding_cast
    builder.create_dot = lambda self, a, b, *others: dot(
        self, widened(self, a), widened(self, b), *others
    )


@contextmanager
def poisoned() -> Iterator[None]:
    """What is allocated and not filled is NaN, so that an element that no program writes is
    seen.
    """

    def filled(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda *arguments, **named: make(*arguments, **named).fill_(torch.nan)

    with (
        patch.object(torch, "empty", filled(torch.empty)),
        patch.object(torch, "empty_like", filled(torch.empty_like)),
    ):
        yield


def judged(problem: Problem, configs: tuple[Config, Config, Config] = SMALL) -> dict[str, Any]:
    """What the harness's own gate says of output and gradients."""
    p = replace(problem, passes="forward+backward")
    inputs = make_inputs(p, CPU, seed=1)
    weights = make_weights(p, CPU, seed=2) if p.scope == "layer" else None
    gate = Gate(p, inputs, weights, seed=3)
    with poisoned():
        output = as_call(p, inputs, weights, backend.attend(p, configs, backend.key_mask(p, CPU)))()
        assert gate.grad_output is not None
        gradients = torch.autograd.grad(output, leaves(inputs, weights), gate.grad_output)
    verdict = gate.judge(output, gradients)
    return {"ratio": verdict.error_ratio, "complaint": verdict.complaint}


def shared_list(dtype: Dtype) -> dict[str, Any]:
    """By pointers, and with descriptors; with the launches that used descriptors."""
    found = {name: judged(replace(p, dtype=dtype)) for name, p in PROBLEMS.items()}
    for name, p in PROBLEMS.items():
        with launches() as made:
            verdict = judged(replace(p, dtype=dtype), DESCRIBED)
        found[f"{name} described"] = verdict | {
            "described": [launch.config.descriptors for launch in made]
        }
    return found


@contextmanager
def launches() -> Iterator[list[_triton_launch.Launch]]:
    made: list[_triton_launch.Launch] = []
    start = _triton_launch.Launch.start

    def noted(launch: _triton_launch.Launch) -> None:
        made.append(launch)
        start(launch)

    with patch.object(_triton_launch.Launch, "start", noted):
        yield made


def padded_batches() -> dict[str, Any]:
    """Sequences of unequal length, as the harness asks for them."""
    named = {name: p for name, p in MASKED.items() if p.mask in backend.MASKS}
    return {
        f"{name} {dtype}": judged(replace(p, dtype=dtype))
        for name, p in named.items()
        for dtype in ("fp32", "bf16")
    }


def layers() -> dict[str, Any]:
    return {
        name: judged(replace(PROBLEMS[name], scope="layer"))
        for name in ("odd", "grouped", "empty_rows")
    }


def drawn_shapes() -> dict[str, Any]:
    """Shapes that hypothesis draws, the same ones every time; it shrinks what fails, and the report
    says what is left.
    """
    worst = {"ratio": 0.0, "examples": 0}

    @settings(
        max_examples=32,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(shapes())
    def holds(drawn: tuple[Problem, tuple[Config, Config, Config]]) -> None:
        verdict = judged(*drawn)
        assert not verdict["complaint"], (drawn, verdict)
        worst["ratio"], worst["examples"] = (
            max(worst["ratio"], verdict["ratio"]),
            worst["examples"] + 1,
        )

    holds()
    return worst


@st.composite
def shapes(draw: st.DrawFn) -> tuple[Problem, tuple[Config, Config, Config]]:
    block = st.sampled_from((16, 32))
    width = st.integers(1, 40) | st.sampled_from(
        (8, 16, 24, 32, 40)
    )  # those that descriptors fit, in any dtype
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


GROUPED = Problem(batch=1, seq_len=40, d_model=1, heads=4, kv_heads=2, d_k=16, d_v=16, causal=True)
SHIFTED = Problem(
    batch=1,
    seq_len=20,
    kv_seq_len=50,
    d_model=1,
    heads=1,
    d_k=16,
    d_v=16,
    causal=True,
    causal_align="bottom_right",
    dtype="bf16",
)
PLAIN = Problem(batch=1, seq_len=70, d_model=1, heads=1, d_k=16, d_v=16, dtype="bf16")
# the kernels' text, what stands there instead, and a problem on which that must be noticed
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
    "the last key is dropped": ("live = keys < n_kv", "live = keys < n_kv - 1", PLAIN),
    "no query sees itself": (
        "keys[None, :] <= (rows + offset)[:, None]",
        "keys[None, :] < (rows + offset)[:, None]",
        SHIFTED,
    ),
    "a query sees the next key": ("keys[None, :] <= (rows", "keys[None, :] - 1 <= (rows", SHIFTED),
    "whole blocks begin too late": ("first_row + offset + 1", "first_row + offset + 2", SHIFTED),
    "the scale is wrong": (
        "p = tl.exp2(s * scale_log2",
        "p = tl.exp2(s * 1.05 * scale_log2",
        PLAIN,
    ),
    "old sums are not scaled down": ("acc * shrink[:, None]", "acc", PLAIN),
    "a row is not written": ("rows < n_q, acc", "(rows < n_q) & (rows != 5), acc", PLAIN),
    "delta is forgotten": ("grad_p - delta_tile[:, None]", "grad_p", PLAIN),
    "the gradient of q is not scaled": ("live, grad * (scale_log2 * LN_2)", "live, grad", PLAIN),
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
    """The complaint about each broken kernel; "" would mean that nobody noticed."""
    text = Path(str(_triton_launch.kernels.__file__)).read_text()
    problems = (PLAIN, SHIFTED, GROUPED, replace(GROUPED, batch=2))
    found: dict[str, Any] = {
        "whole": [
            judged(problem, configs)["complaint"]
            for problem in problems
            for configs in (SMALL, DESCRIBED)
        ]
    }
    mutations = [(name, mutation, SMALL) for name, mutation in MUTATIONS.items()]
    mutations += [(name, mutation, DESCRIBED) for name, mutation in MUTATIONS_DESCRIBED.items()]
    with TemporaryDirectory() as folder:
        for number, (name, (old, new, problem), configs) in enumerate(mutations):
            assert text.count(old) >= 1, f"{old!r} no longer stands in the kernels"
            path = (
                Path(folder) / f"broken_{number}.py"
            )  # a file, because Triton reads its kernels' source
            path.write_text(text.replace(old, new, 1))
            spec = spec_from_file_location(path.stem, path)
            assert spec is not None
            assert spec.loader is not None
            broken = module_from_spec(spec)
            spec.loader.exec_module(broken)
            with patch.object(_triton_launch, "kernels", broken):
                found[name] = judged(problem, configs)["complaint"]
    return found


def run(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False, offset: int = 0,
    configs: tuple[Config, Config, Config] = SMALL,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return attention(
        q,
        k,
        v,
        mask,
        q.shape[-1] ** -0.5,
        causal,
        offset,
        False,
        *(config.numbers() for config in configs),
    )


def plain(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor) -> Tensor:
    """The formula with every intermediate in the dtype of q; `hidden` [batch, 1, n_q, n_kv].
    Queries that see no key give zeros.
    """
    group = q.shape[1] // k.shape[1]
    s = q @ k.repeat_interleave(group, 1).mT * q.shape[3] ** -0.5
    p = s.masked_fill(
        hidden, -torch.inf if not hidden.all(-1).any() else torch.finfo(s.dtype).min
    ).softmax(-1)
    return p.masked_fill(hidden, 0.0) @ v.repeat_interleave(group, 1)


def tensors(
    *,
    dtype: torch.dtype = torch.float32,
    n_q: int = 37,
    n_kv: int = 50,
    heads: int = 2,
    kv_heads: int = 1,
) -> list[Tensor]:
    generator = torch.Generator().manual_seed(5)
    shapes = ((2, heads, n_q, 24), (2, kv_heads, n_kv, 24), (2, kv_heads, n_kv, 20))
    return [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes]


def masks() -> dict[str, Any]:
    """Errors against float64 in multiples of the plain formula's; and what hidden keys, full of
    NaN, do to the result.
    """
    found: dict[str, Any] = {}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for causal, offset in ((False, 0), (True, 0), (True, 13), (True, -20)):
            q, k, v = tensors(dtype=dtype)
            mask = torch.rand(2, 50, generator=torch.Generator().manual_seed(6)) > 0.4
            mask[:, -7:] = False  # the last keys are padding
            mask[1, :16] = False  # and a whole block
            hidden = ~mask[:, None, None, :].expand(2, 1, 37, 50)
            if causal:
                hidden = hidden | (torch.arange(50) > torch.arange(37)[:, None] + offset)
            results = passes(
                lambda q, k, v, m=mask, c=causal, o=offset: run(q, k, v, m, causal=c, offset=o)[0],
                q,
                k,
                v,
            )
            exact = passes(
                lambda q, k, v, h=hidden: plain(q, k, v, h),
                *(x.detach().double().requires_grad_() for x in (q, k, v)),
            )
            honest = passes(lambda q, k, v, h=hidden: plain(q, k, v, h), q, k, v)
            floor = {torch.float32: 2.0**-18, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}[
                dtype
            ]  # the gate's
            errors = [
                float((r.double() - e).norm() / e.norm())
                for r, e in zip(results, exact, strict=True)
            ]
            allowed = [
                float((h.double() - e).norm() / e.norm())
                for h, e in zip(honest, exact, strict=True)
            ]
            allowed[1:] = [max(a, floor) for a in allowed[1:]]
            found[f"{dtype} {'causal' if causal else 'full'} {offset}"] = max(
                e / a for e, a in zip(errors, allowed, strict=True)
            )
    return found


def passes(call: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    with poisoned():
        output = call(*inputs)
        gradient = torch.randn(output.shape, generator=torch.Generator().manual_seed(7)).to(
            output.dtype
        )
        return [output.detach(), *torch.autograd.grad(output, inputs, gradient)]


def hidden_keys() -> dict[str, bool]:
    """What NaN and infinity in masked keys and values change: nothing."""
    mask = torch.ones(2, 50, dtype=torch.bool)
    mask[0, 20:] = False
    mask[1, ::3] = False
    clean = tensors()
    found = {}
    for name, poison in (("nan", torch.nan), ("inf", torch.inf)):
        q, k, v = (x.detach().clone() for x in clean)
        for x in (k, v):
            x[:] = torch.where(mask[:, None, :, None], x, poison)
        for causal in (False, True):
            ours = passes(
                lambda q, k, v, c=causal: run(q, k, v, mask, causal=c)[0],
                *(x.requires_grad_() for x in (q, k, v)),
            )
            wanted = passes(lambda q, k, v, c=causal: run(q, k, v, mask, causal=c)[0], *clean)
            found[f"{name} {'causal' if causal else 'full'}"] = all(
                torch.equal(a, b) for a, b in zip(ours, wanted, strict=True)
            )
    return found


def blind_queries() -> dict[str, bool]:
    """Queries that see no key: by the mask, by the triangle, and by both."""
    mask = torch.ones(2, 50, dtype=torch.bool)
    mask[1] = False
    q, k, v = tensors()
    found = {}
    for name, case_mask, offset in (
        ("mask", mask, 100),
        ("triangle", None, -20),
        ("both", mask, -20),
        ("all", mask & False, 100),
    ):
        o, lse = run(q, k, v, case_mask, causal=True, offset=offset)
        results = passes(
            lambda q, k, v, m=case_mask, f=offset: run(q, k, v, m, causal=True, offset=f)[0],
            q,
            k,
            v,
        )
        blind = torch.arange(37) + offset < 0
        blind = (
            blind[None] | (~case_mask.any(1)[:, None] if case_mask is not None else blind[None])
        ).expand(2, 37)
        rows = blind[:, None, :].expand(2, 2, 37)
        zeros = not o.detach()[rows].any() and not results[1][rows].any()
        unseen = torch.ones(2, 50, dtype=torch.bool) if case_mask is None else ~case_mask
        unseen = unseen if case_mask is not None else (torch.arange(50) > 36 + offset).expand(2, 50)
        no_gradient = not any(x[unseen[:, None, :].expand(2, 1, 50)].any() for x in results[2:])
        finite = all(bool(torch.isfinite(x).all()) for x in results)
        found[name] = (
            zeros
            and no_gradient
            and finite
            and bool((lse[rows] == -torch.inf).all())
            and bool(torch.isfinite(lse[~rows]).all())
        )
    return found


def operator() -> dict[str, Any]:
    """The operator as torch sees it."""
    q, k, v = tensors()
    arguments = (q, k, v, None, 0.25, True, 3, False, *(config.numbers() for config in SMALL))
    o, lse = attention(*arguments)
    s = (q.double() @ k.double().repeat_interleave(2, 1).mT * 0.25).masked_fill(
        torch.arange(50) > torch.arange(37)[:, None] + 3, -torch.inf
    )
    first, again = (passes(lambda q, k, v: run(q, k, v)[0], q, k, v) for _ in range(2))
    compiled = torch.compile(
        lambda q, k, v: run(q, k, v, causal=True)[0] * 2, backend="aot_eager", fullgraph=True
    )
    from_graph, eager = (
        passes(compiled, q, k, v),
        passes(lambda q, k, v: run(q, k, v, causal=True)[0] * 2, q, k, v),
    )
    with FlopCounterMode(display=False) as counter:
        output = run(q, k, v)[0]
    forward_flops = counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        gradients = torch.autograd.grad(output.sum(), (q, k, v))
    return {
        "opcheck": torch.library.opcheck(torch.ops.attnbench.triton_attention, arguments),
        "lse_error": float((lse.double() - s.logsumexp(-1) / np.log(2)).abs().max()),
        "lse_has_gradient": lse.requires_grad,
        "repeats": all(torch.equal(a, b) for a, b in zip(first, again, strict=True)),
        "compiles": all(torch.equal(a, b) for a, b in zip(from_graph, eager, strict=True)),
        "flops": [forward_flops, counter.get_total_flops()],
        "merged": o.transpose(1, 2).is_contiguous(),
        "layouts": [
            gradient.stride() == x.stride()
            for gradient, x in zip(gradients, (q, k, v), strict=True)
        ],
    }


VIEWS = {
    "merged heads": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "columns apart": lambda x: x.mT.contiguous().mT,
    "every second row": lambda x: x.repeat_interleave(2, 2)[:, :, ::2],
    "unaligned": lambda x: torch.nn.functional.pad(x, (3, 2))[..., 3:-2],
    "rows unaligned": lambda x: torch.nn.functional.pad(x, (0, 2))[..., :-2],
    "batch last": lambda x: x.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2),
    "one for all heads": lambda x: x[:, :1].expand_as(x),
}


def strides() -> dict[str, bool]:
    """Results from views of other layouts, against those from contiguous copies of the same
    numbers.
    """
    mask = torch.rand(50, 4, generator=torch.Generator().manual_seed(8)) > 0.3
    found = {}
    for name, view in VIEWS.items():
        seen = [view(x.detach()) for x in tensors()]
        copies = [x.contiguous().requires_grad_() for x in seen]
        ours = passes(
            lambda q, k, v: run(q, k, v, mask.mT[::2], causal=True, offset=5)[0],
            *(x.requires_grad_() for x in seen),
        )
        wanted = passes(
            lambda q, k, v: run(q, k, v, mask.mT[::2].contiguous(), causal=True, offset=5)[0],
            *copies,
        )
        found[name] = all(torch.equal(a, b) for a, b in zip(ours, wanted, strict=True))
    return found


def descriptors() -> dict[str, Any]:
    """Which of the three launches used descriptors, and whether the results are those of pointers,
    to the bit.
    """
    found = {}
    for name, view in VIEWS.items():
        seen = [view(x.detach()).requires_grad_() for x in tensors(kv_heads=2)]
        by_pointers = passes(lambda q, k, v: run(q, k, v, causal=True)[0], *seen)
        with launches() as made:
            ours = passes(lambda q, k, v: run(q, k, v, causal=True, configs=DESCRIBED)[0], *seen)
        same = all(torch.equal(a, b) for a, b in zip(ours, by_pointers, strict=True))
        found[name] = [[launch.config.descriptors for launch in made], same]
    q, k, v = tensors()
    with launches() as made:
        passes(
            lambda q, k, v: run(q, k, v, torch.ones(2, 50, dtype=torch.bool), configs=DESCRIBED)[0],
            q,
            k,
            v,
        )
        run(q, k, v, configs=DESCRIBED)[0].sum().backward()  # whose gradient has strides of 0
    return found | {"masked and summed": [launch.config.descriptors for launch in made]}


def refusals() -> list[str]:
    """What the operator says to arguments that it would read wrongly."""
    q, k, v = tensors()
    mask = torch.ones(2, 50, dtype=torch.bool)
    calls: list[Callable[[], object]] = [
        lambda: run(q[0], k[0], v[0]),
        lambda: run(q, k[..., :-1], v),
        lambda: run(q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1)),
        lambda: run(q, k, v[:, :, :-1]),
        lambda: run(q[:, :, :0], k, v),
        lambda: run(*(x.repeat_interleave(20, 3) for x in (q, k, v))),
        lambda: run(q.double(), k.double(), v.double()),
        lambda: run(q, k.half(), v),
        lambda: run(q, k, v, mask[:, :-1]),
        lambda: run(q, k, v, mask.float()),
        lambda: attention(
            q, k, v, None, 0.0, False, 0, False, *(config.numbers() for config in SMALL)
        ),
    ]
    said = []
    for call in calls:
        try:
            call()
        except ValueError as error:
            said.append(str(error))
        else:
            said.append("")
    return said


def peaks() -> dict[str, list[int | None]]:
    """Bytes by formula and as torch's allocator saw them. The interpreter keeps what it was given
    until garbage is collected.
    """
    start = _triton_launch.Launch.start

    def start_and_forget(launch: _triton_launch.Launch) -> None:
        start(launch)
        gc.collect()

    found = {}
    with patch.object(_triton_launch.Launch, "start", start_and_forget):
        for name in ("odd", "multi_query", "cross", "wide_values", "empty_rows"):
            for changes in (
                {},
                {"scope": "layer"},
                {"dtype": "fp16", "passes": "forward+backward"},
            ):
                problem = replace(PROBLEMS[name], **changes)
                found[f"{name} {changes}"] = [
                    backend.peak_bytes(problem, torch.device("cuda"), 1),
                    measured_peak(problem),
                ]
    return found


def measured_peak(problem: Problem) -> int:
    inputs = make_inputs(problem, CPU, seed=1)
    weights = make_weights(problem, CPU, seed=2) if problem.scope == "layer" else None
    call = as_call(problem, inputs, weights, backend.attend(problem, SMALL))
    with torch.no_grad():
        gradient = torch.ones_like(call())
        if not problem.backward:
            return peak(call)

    def train() -> object:
        output = call()
        return output, torch.autograd.grad(output, inputs, gradient)

    return peak(train)


def main() -> None:
    torch.set_num_threads(1)
    mend_bf16()
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))


if __name__ == "__main__":
    main()
