"""`fused` through torch.compile: the same textbook code, made into kernels by torch's compiler, in
scope "layer" with its projections.

Torch's compiler knows the textbook's formula and may put its own fused attention in its place; the
row's `kernel` then says so.
"""

from contextlib import AbstractContextManager

import torch

from . import fused
from ._inductor import ahead, compiled, keeping_buffers, lacking
from .backend import Call, Inputs, Weights
from .problem import MASKS as EVERY_MASK
from .problem import Problem

MASKS = EVERY_MASK
COMPILES = True


def unavailable(device: torch.device) -> str | None:
    return lacking(device)


def context(problem: Problem) -> AbstractContextManager[object]:
    return keeping_buffers(problem)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    return ahead(problem, inputs, weights, compiled(fused.prepare(problem, inputs, weights)))
