"""Errors of output and gradients per dtype and backend, over N, by the correctness check: the worse
of the two, against float64, and over the error of a textbook implementation in the same dtype.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch

from ...impls.problem import Dtype, Problem
from ..measure.correctness import CorrectnessCheck
from ..measure.prepared_call import make_tensors, prepare_call
from ..rows.findings import Finding
from ._shared import exact_backends

QUESTION = "How large is the error of each dtype and backend, and does it grow with N?"
DTYPES: tuple[Dtype, ...] = ("fp32", "bf16", "fp16")
LENGTHS = (64, 256, 1024)
D_MODEL, HEADS = 64, 1


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    """Every exact backend that can run here.

    `error_ratio` is over the error of a textbook implementation in the same dtype.
    """
    for dtype in DTYPES:
        for seq_len in LENGTHS:
            forward = Problem(batch=1, seq_len=seq_len, d_model=D_MODEL, heads=HEADS, dtype=dtype)
            one = replace(forward, causal=problem.causal, passes="forward+backward")
            tensors = make_tensors(one, device, seed)
            correctness = CorrectnessCheck(one, *tensors, seed)
            for backend in exact_backends(one, device):
                prepared = prepare_call(one, backend, tensors, correctness.grad_output)
                with prepared.in_force():
                    result = correctness.check(*prepared.result())
                yield Finding(
                    backend=backend.name,
                    dtype=dtype,
                    seq_len=seq_len,
                    causal=one.causal,
                    error_l2_ratio=result.error_l2_ratio,
                    error_ratio=result.error_ratio,
                    complaint=result.complaint,
                )
