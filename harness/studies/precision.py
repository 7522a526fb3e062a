"""How far results are from the exact ones, per dtype and backend, over N: output and gradients,
judged as the gate judges them.
"""

from collections.abc import Iterator
from typing import Any

import torch

from ...impls import load, missing, names
from ...impls.problem import Dtype, Problem
from ..measure.correctness import CorrectnessCheck
from ..measure.prepared_call import make_tensors, prepare_call

QUESTION = "How large is the error, per dtype and backend, and does it grow with N?"
DTYPES: tuple[Dtype, ...] = ("fp32", "bf16", "fp16")
LENGTHS = (64, 256, 1024)
D_MODEL, HEADS = 64, 1


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[dict[str, Any]]:
    """Every exact backend that can run here. `error_ratio` is over the error of an honest textbook
    implementation in the same dtype.
    """
    for dtype in DTYPES:
        for seq_len in LENGTHS:
            one = Problem(
                batch=1,
                seq_len=seq_len,
                d_model=D_MODEL,
                heads=HEADS,
                dtype=dtype,
                causal=problem.causal,
                passes="forward+backward",
            )
            tensors = make_tensors(one, device, seed)
            correctness = CorrectnessCheck(one, *tensors, seed)
            for name in names():
                backend = None if missing(name) else load(name)
                if (
                    backend is None
                    or backend.exactness != "exact"
                    or backend.compiles
                    or backend.why_not(one, device)
                ):
                    continue  # what compiles would do so anew for each problem
                prepared = prepare_call(one, backend, tensors, correctness.grad_output)
                with prepared.in_force():
                    result = correctness.check(*prepared.result())
                yield {
                    "backend": name,
                    "dtype": dtype,
                    "seq_len": seq_len,
                    "causal": one.causal,
                    "error_l2_ratio": result.error_l2_ratio,
                    "error_ratio": result.error_ratio,
                    "complaint": result.complaint,
                }
