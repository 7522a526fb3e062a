"""The operator on tensors: masks, layouts, descriptors, refusals, and its peak of memory."""

import gc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from attnbench.impls import Problem, make_inputs, make_weights
from attnbench.impls import triton as backend
from attnbench.impls._triton import launch
from attnbench.impls._triton.configs import KERNELS, Config
from attnbench.impls._triton.launch import Setting
from attnbench.impls._triton.op import _Attention, attention
from attnbench.impls.backend import Inputs, leaves
from attnbench.impls.layer import as_call
from attnbench.impls.peak_formulas import FORMULAS
from tests.impls._triton.conftest import in_pages, pairs_seen
from tests.impls._triton.interpreter import CPU, DESCRIBED, SMALL, Configs, launches, main, poisoned
from tests.impls.conftest import PROBLEMS
from tests.impls.peak_formulas.test_peak_bytes import peak


def setting(
    width: int,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    offset: int = 0,
    band: str = "none",
    window: int = 0,
    configs: Configs = SMALL,
    **more: Any,
) -> Setting:
    """As of a problem, whose lengths do not matter. `more`: other arguments of kernels."""
    sizes: dict[str, Any] = {"batch": 1, "seq_len": 8, "d_model": width, "heads": 1}
    problem = Problem(**sizes, causal=causal, mask=band, window=window)
    found = Setting.of(problem, Inputs(*[torch.empty(0)] * 3), configs)
    given = {"offset": offset, "key_mask": mask if mask is None else mask.view(torch.uint8)}
    return found._replace(arguments=found.arguments | given | more)


def run(q: Tensor, k: Tensor, v: Tensor, *mask: Tensor | None, **how: Any) -> tuple[Tensor, Tensor]:
    return attention(q, k, v, setting(q.shape[-1], *mask, **how))


def tensors(*, batch: int = 2, kv_heads: int = 1) -> list[Tensor]:
    generator = torch.Generator().manual_seed(5)
    shapes = ((batch, 2, 37, 24), (batch, kv_heads, 50, 24), (batch, kv_heads, 50, 20))
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]


def run_output(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    return run(q, k, v, **options)[0]


def equal(results: list[Tensor], others: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(results, others, strict=True))


def passes(call: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    """Output and gradients."""
    with poisoned():
        output = call(*inputs)
        gradient = torch.randn(output.shape, generator=torch.Generator().manual_seed(7))
        gradients = torch.autograd.grad(output, inputs, gradient.to(output.dtype))
        return [output.detach(), *gradients]


def masked_keys(every: str) -> dict[str, bool]:
    """Whether results stay the same with NaN and infinity in masked keys and values."""
    mask = torch.ones(2, 50, dtype=torch.bool)
    mask[0, 20:] = False
    mask[1, ::3] = False
    clean = tensors()
    found = {}
    cases = [*product((("nan", torch.nan), ("inf", torch.inf)), (False, True))]
    for (name, poison), causal in cases[:: int(every)]:
        q, k, v = (x.detach().clone() for x in clean)
        for x in (k, v):
            x[:] = torch.where(mask[:, None, :, None], x, poison)
        poisoned_inputs = [x.requires_grad_() for x in (q, k, v)]
        call = partial(run_output, mask=mask, causal=causal)
        same = equal(passes(call, *poisoned_inputs), passes(call, *clean))
        found[f"{name} {'causal' if causal else 'full'}"] = same
    return found


def fully_masked_queries(every: str) -> dict[str, bool]:
    """Queries that see no key: because of the mask, of the triangle, and of both."""
    mask = torch.ones(2, 50, dtype=torch.bool)
    mask[1] = False
    found = {}
    cases = [
        ("triangle", None, -20),
        ("mask", mask, 100),
        ("both", mask, -20),
        ("all", mask & False, 100),
    ]
    for name, case_mask, offset in cases[:: int(every)]:
        q, k, v = tensors()
        o, lse = run(q, k, v, case_mask, causal=True, offset=offset)
        call = partial(run_output, mask=case_mask, causal=True, offset=offset)
        results = passes(call, q, k, v)
        by_triangle, beyond = torch.arange(37) + offset < 0, torch.arange(50) > 36 + offset
        if case_mask is None:
            queries, keys = by_triangle.expand(2, 37), beyond.expand(2, 50)
        else:
            queries, keys = by_triangle | ~case_mask.any(1)[:, None], ~case_mask
        rows = queries[:, None, :].expand(2, 2, 37)
        unseen = keys[:, None, :].expand(2, 1, 50)
        found[name] = (
            not o.detach()[rows].any()
            and not results[1][rows].any()
            and not any(x[unseen].any() for x in results[2:])
            and all(bool(torch.isfinite(x).all()) for x in results)
            and bool((lse[rows] == -torch.inf).all())
            and bool(torch.isfinite(lse[~rows]).all())
        )
    return found


BANDED: tuple[dict[str, Any], ...] = (
    *({"causal": True, "offset": offset} for offset in (0, 13, -20, 31, 64)),
    {"causal": False, "offset": 0, "band": "local", "window": 20},
    {"causal": True, "offset": 13, "band": "local", "window": 1},
    {"causal": False, "offset": 10, "band": "chunked", "window": 40},
    {"causal": True, "offset": 0, "band": "chunked", "window": 70},
)


def unseen_tiles(every: str) -> dict[str, bool]:
    """Whether kernels read exactly the tiles of which a query sees something; in all cases, or
    every fifth.

    NaN in one tile of keys, or of queries, reaches the results of all programs that read it, even
    where its weights are zero, and no bit of the others.
    """
    n_q, n_kv, block = 100, 110, SMALL["forward"].block_kv
    generator = torch.Generator().manual_seed(9)
    q, k, v, do = (torch.randn(1, 1, n, 16, generator=generator) for n in (n_q, n_kv, n_kv, n_q))
    found = {}
    cases = [*product(BANDED, (("pointers", SMALL), ("descriptors", DESCRIBED)), (0, 64))]
    for mask, (described, configs), first in cases[:: int(every)]:
        part = slice(first, first + block)
        bad_q, bad_k, bad_v, bad_do = (x.clone() for x in (q, k, v, do))
        for x in (bad_q, bad_k, bad_v, bad_do):
            x[:, :, part] = torch.nan
        how = setting(16, configs=configs, **mask)
        forward = partial(attention, setting=how)
        o, lse = forward(q, k, v)

        def backward(do: Tensor, q: Tensor, k: Tensor, v: Tensor, how: Any = how) -> list[Tensor]:
            # o and lse are those of the clean pass: only what backward reads is to differ
            ctx = SimpleNamespace(saved_tensors=(q, k, v, None, o, lse), setting=how)  # noqa: B023
            return [*_Attention.backward(ctx, do, None)[:3]]

        seen = pairs_seen(n_q, n_kv, **mask)
        reads_keys = by_tile(seen[:, part].any(1), block)
        reads_queries = by_tile(seen[part].any(0), block)
        dq, dk, dv = backward(do, q, k, v)
        bad_keys = (forward(q, bad_k, bad_v)[0], backward(do, q, bad_k, bad_v)[0])
        bad_queries = backward(bad_do, bad_q, k, v)[1:]
        for name, result, clean, reads in (
            *zip(("o", "dq"), bad_keys, (o, dq), (reads_keys, reads_keys), strict=True),
            *zip(("dk", "dv"), bad_queries, (dk, dv), (reads_queries,) * 2, strict=True),
        ):
            wanted = torch.where(reads[:, None], torch.nan, clean[0, 0])
            same = torch.equal(result[0, 0].nan_to_num(7e7), wanted.nan_to_num(7e7))
            found[f"{mask}, {described}, {first}: {name}"] = same
    return found


def by_tile(rows: Tensor, block: int) -> Tensor:
    """Whether any row of the same tile is True."""
    return torch.cat([part.any().expand(len(part)) for part in rows.split(block)])


def operator() -> dict[str, Any]:
    """The function as torch sees it."""
    q, k, v = tensors(batch=1)
    how = {"causal": True, "offset": 3}
    o, lse = run(q, k, v, **how)
    masked = torch.arange(50) > torch.arange(37)[:, None] + 3
    s = q.double() @ k.double().repeat_interleave(2, 1).mT * 24**-0.5
    s = s.masked_fill(masked, -torch.inf)
    first, again = (passes(run_output, q, k, v) for _ in range(2))
    gradients = torch.autograd.grad(o.sum(), (q, k, v))
    return {
        "lse_error": float((lse.double() - s.logsumexp(-1) / np.log(2)).abs().max()),
        "lse_has_gradient": lse.requires_grad,
        "repeats": equal(first, again),
        "merged": o.transpose(1, 2).is_contiguous(),
        "layouts": [g.stride() == x.stride() for g, x in zip(gradients, (q, k, v), strict=True)],
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


def strides(every: str) -> dict[str, bool]:
    """Whether views of other layouts give the same results as contiguous copies; of a part of them
    in a batch of one.
    """
    batch = 2 if every == "1" else 1
    mask = (torch.rand(50, 4, generator=torch.Generator().manual_seed(8)) > 0.3).mT[: 2 * batch : 2]
    call = partial(run_output, causal=True, offset=5)
    found = {}
    for name, view in [*VIEWS.items()][:: int(every)]:
        views = [view(x.detach()) for x in tensors(batch=batch)]
        copies = [x.contiguous().requires_grad_() for x in views]
        ours = passes(partial(call, mask=mask), *(x.requires_grad_() for x in views))
        found[name] = equal(ours, passes(partial(call, mask=mask.contiguous()), *copies))
    return found


def descriptors(every: str) -> dict[str, Any]:
    """Which of the three launches used descriptors, and whether the results are those of pointers,
    to the bit; of a part of the layouts in a batch of one.
    """
    batch, call, found = 2 if every == "1" else 1, partial(run_output, causal=True), {}
    for name, view in [*VIEWS.items()][:: int(every)]:
        views = [view(x.detach()).requires_grad_() for x in tensors(batch=batch, kv_heads=2)]
        by_pointers = passes(call, *views)
        with launches() as made:
            ours = passes(partial(call, configs=DESCRIBED), *views)
        found[name] = [[one.config.descriptors for one in made], equal(ours, by_pointers)]
    q, k, v = tensors(batch=batch)
    mask = torch.ones(batch, 50, dtype=torch.bool)
    with launches() as made:
        passes(partial(run_output, mask=mask, configs=DESCRIBED), q, k, v)
        run(q, k, v, configs=DESCRIBED)[0].sum().backward()  # this gradient has strides of 0
    return found | {"masked and summed": [one.config.descriptors for one in made]}


def refusals() -> list[str]:
    """The errors for shapes that it would read wrongly; "" if there is none."""
    q, k, v = tensors()
    *pools, table = in_pages(k, v, 16)
    calls: list[Callable[[], object]] = [
        lambda: run(q, k[..., :-1], v),
        lambda: run(q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1)),
        lambda: run(q, k, v[:, :, :-1]),
        lambda: run(q, k[:1], v[:1]),
        lambda: run(q, k.half(), v),
        lambda: run(q, *pools, page_table=table, PAGE=16, n_kv=50)[0].sum().backward(),
    ]
    errors = []
    for call in calls:
        try:
            call()
        except ValueError as error:
            errors.append(str(error))
        else:
            errors.append("")
    return errors


def peaks(every: str) -> dict[str, list[int | None]]:
    """Bytes by formula and as torch's allocator saw them; of all problems, or every third."""
    start = launch.Launch.start

    def start_and_collect(one: launch.Launch) -> None:
        """The interpreter keeps its arguments until garbage is collected."""
        start(one)
        gc.collect()

    found = {}
    training = {"dtype": "fp16", "passes": "forward+backward"}
    sunk = training | {"sinks": True}
    names = ("odd", "multi_query", "cross", "wide_values", "empty_rows")
    cases = [*product(names, ({}, {"scope": "layer"}, {"page": 16}, training, sunk))]
    with patch.object(launch.Launch, "start", start_and_collect):
        for name, changes in cases[:: int(every)]:
            problem = replace(PROBLEMS[name], **changes)
            predicted = FORMULAS["triton"](problem, torch.device("cuda"), 1, variant="")
            found[f"{name} {changes}"] = [predicted, measured_peak(problem)]
    return found


def measured_peak(problem: Problem) -> int:
    inputs = make_inputs(problem, CPU, seed=1)
    weights = make_weights(problem, CPU, seed=2) if problem.scope == "layer" else None
    core = backend.attend(problem, inputs, dict.fromkeys(KERNELS, Config(64, 64, 4, 1)))
    call = as_call(problem, inputs, weights, core, fills=True)
    with torch.no_grad():
        gradient = torch.ones_like(call())
        if not problem.backward:
            return peak(call)

    def train() -> object:
        output = call()
        return output, torch.autograd.grad(output, leaves(inputs, weights), gradient)

    return peak(train)


if __name__ == "__main__":
    from tests.impls._triton import interpreted_pages  # which uses this file

    main(globals() | {"paged": interpreted_pages.paged})
