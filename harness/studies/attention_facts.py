"""Exact statements on attention, tried on random inputs: hulls of the textbook formula in float64,
and what single scores and masks do in every exact backend.

The hull: an output o lies in the convex hull of the rows of V if there are weights w >= 0 with
sum w = 1 and V^T w = o. Linear programming finds the smallest e with |V^T w - o| <= e in every
component (HiGHS, by scipy).
"""

from collections.abc import Iterator
from dataclasses import replace
from math import nan, sqrt

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Generator, Tensor

from ...impls.backend import TORCH_DTYPE, Inputs
from ...impls.discovery.loading import Backend
from ...impls.problem import Problem
from ...impls.shared.mask_tensors import given_mask
from ..files.errors import first_line
from ..rows.findings import Finding
from ._shared import exact_backends, held_fields, normal, rounding, weights

QUESTION = (
    "Do outputs lie in the hull of the values, do other weights fall when a score rises, and does"
    " -1e9 mask like -inf?"
)
TOKENS, WIDTH = 10, 6
HULL_CASES = 20  # of TOKENS rows each
HULL_ROUNDING = 1e-6  # what HiGHS promises is 1e-7
CASES, KEYS = 30, 16
FILL = -1e9
OF_ROWS = {False: "fill_equals_infinity", True: "fill_equals_infinity_without_keys"}
"""By whether a row sees no key."""


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    generator = Generator().manual_seed(seed)
    for of in ("values", "inputs"):
        errors = [output_outside(of, generator) for _ in range(HULL_CASES)]
        yield Finding(statement=f"outputs_in_hull_of_{of}", **held_fields(errors, HULL_ROUNDING))
    head = Problem(batch=1, seq_len=1, kv_seq_len=KEYS, d_model=KEYS, heads=1, dtype=problem.dtype)
    for backend in exact_backends(head, device):
        errors = [others_rise(backend, head, device, generator) for _ in range(CASES)]
        yield _of_backend("other_weights_fall", backend, head, errors)
    for dtype in TORCH_DTYPE:
        square = replace(head, seq_len=KEYS, dtype=dtype)
        for empty, name in OF_ROWS.items():
            yield from _fills(name, square, device, generator, empty=empty)


def _fills(
    name: str, of: Problem, device: torch.device, generator: Generator, *, empty: bool
) -> Iterator[Finding]:
    """One for each backend; one for all if torch cannot make the mask."""
    try:
        torch.zeros(1, dtype=TORCH_DTYPE[of.dtype]).masked_fill(torch.ones(1) > 0, FILL)
    except RuntimeError as error:
        held = held_fields([nan], 0.0)
        yield Finding(statement=name, dtype=of.dtype, complaint=first_line(error), **held)
        return
    for backend in exact_backends(of, device):
        if not backend.why_not_under_mask(of, device):
            errors = [
                fill_differs(backend, of, device, generator, empty=empty) for _ in range(CASES)
            ]
            yield _of_backend(name, backend, of, errors)


def hull_distance(point: Tensor, corners: Tensor) -> float:
    """From a point [width] to the hull of corners [count, width], as the largest component."""
    count, width = corners.shape
    v, edge = corners.T.numpy(), np.ones((width, 1))
    found = linprog(
        np.r_[np.zeros(count), 1.0],
        A_ub=np.block([[v, -edge], [-v, -edge]]),
        b_ub=np.r_[point.numpy(), -point.numpy()],
        A_eq=np.r_[np.ones(count), 0.0][None],
        b_eq=[1.0],
    )
    if found.fun is None:
        raise RuntimeError(f"linear program: {found.message}")
    return float(found.fun)


def output_outside(of: str, generator: Generator) -> float:
    """How far the outputs of a head on random inputs are outside the hull of its values or of those
    inputs, over its size.
    """
    x, w_q, w_k, w_v = (
        torch.randn(rows, WIDTH, generator=generator, dtype=torch.float64)
        for rows in (TOKENS, WIDTH, WIDTH, WIDTH)
    )
    v = x @ w_v  # [token, width]
    outputs = torch.softmax((x @ w_q) @ (x @ w_k).T / sqrt(WIDTH), -1) @ v
    corners = {"values": v, "inputs": x}[of]
    return max(hull_distance(one, corners) for one in outputs) / float(corners.abs().max())


def others_rise(backend: Backend, of: Problem, device: torch.device, generator: Generator) -> float:
    """The largest rise of another weight, or fall of the own, when one key's score rises by 1."""
    q, k, _ = normal(of, device, generator)
    raised, further = int(torch.randint(of.kv_seq_len, (), generator=generator)), k.clone()
    further[..., raised, :] += q[..., 0, :] / (q.square().sum() * of.scale)
    change = weights(backend, of, q, further).double() - weights(backend, of, q, k).double()
    change[..., raised] *= -1
    return float(change.max().clamp_min(0))


def fill_differs(
    backend: Backend, of: Problem, device: torch.device, generator: Generator, *, empty: bool
) -> float:
    """Of weights under a mask with -1e9 added from those under the same with -inf, whose rows
    without any key are zero.
    """
    q, k, _ = normal(of, device, generator)
    hidden = (torch.rand(of.seq_len, of.kv_seq_len, generator=generator) < 0.5).to(device)
    hidden[:, 0] = False
    if empty:
        hidden[1] = True
    zeros = torch.zeros_like(hidden, dtype=q.dtype)
    filled, exact = (
        _under(backend, of, q, k, zeros.masked_fill(hidden, fill)) for fill in (FILL, -torch.inf)
    )
    return float((filled - exact).abs().max())


def _under(backend: Backend, of: Problem, q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    """The weights of a head."""
    given, unseen = given_mask(mask, of, q.dtype)
    with torch.no_grad(), backend.context(of):
        found = backend.attention_weights(of, Inputs(q, k, k, mask=given))
    return found.masked_fill(unseen, 0.0).double()


def _of_backend(name: str, backend: Backend, of: Problem, errors: list[float]) -> Finding:
    held = held_fields(errors, rounding(of.dtype))
    return Finding(statement=name, backend=backend.name, dtype=of.dtype, **held)
