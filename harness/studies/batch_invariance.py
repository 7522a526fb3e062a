"""Whether a backend's output for a sequence is the same to the bit, called again, alone and in a
batch, and in another process.

A kernel may split its sums by the size of the batch or by what is idle, and sums in another order
round otherwise: then a model's answer depends on who else asks.
"""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import torch

from ...impls.backend import Backend, Inputs, make_inputs
from ...impls.kv_storage import AS_USUAL
from ...impls.problem import Problem
from ..measure.correctness import distance
from ..rows.findings import BatchInvariance
from ._backends import exact_backends

QUESTION = (
    "Is a sequence's output the same to the bit, called again, alone and in a batch, and in"
    " another process?"
)
PARTS = {"process": (1, 2)}  # each in a new one: equal digests are equal outputs
PART_S = 2.0
BATCH = 4
LONGEST = 2048  # tokens


def run(
    problem: Problem, device: torch.device, seed: int, *, process: int
) -> Iterator[dict[str, Any]]:
    """A finding for each exact backend that compiles nothing, forward, keys and values as they are.

    `again_error_l2_ratio`, `batch_error_l2_ratio`: how far the output of a second call, and that of
    the first of BATCH sequences called alone, is from that in the batch; 0 if they are equal to the
    bit. `output_digest`: of its bits.
    """
    whole = replace(problem, lengths="", batch=BATCH, **AS_USUAL)
    n_q, n_kv = min(whole.seq_len, LONGEST), min(whole.kv_seq_len, LONGEST)
    whole = replace(whole, seq_len=n_q, kv_seq_len=n_kv, scope="core", passes="forward")
    inputs = make_inputs(whole, device, seed)
    q, k, v = (one[:1].contiguous() for one in inputs)
    alone = Inputs(q, k, v, inputs.more)
    for backend in exact_backends(whole, device):
        first, again = _output(backend, whole, inputs), _output(backend, whole, inputs)
        single = _output(backend, replace(whole, batch=1), alone)
        bits = first.cpu().contiguous().view(torch.uint8).numpy().tobytes()
        yield BatchInvariance(
            backend=backend.name,
            dtype=whole.dtype,
            seq_len=n_q,
            kv_seq_len=n_kv,
            batch=BATCH,
            again_error_l2_ratio=_error(again, first),
            batch_error_l2_ratio=_error(single, first[:1]),
            output_digest=sha256(bits).hexdigest()[:12],
        ).stored()


@torch.no_grad()
def _output(backend: Backend, problem: Problem, inputs: Inputs) -> torch.Tensor:
    with backend.context(problem):
        return backend.prepare(problem, inputs, None)()


def _error(found: torch.Tensor, first: torch.Tensor) -> float:
    """Relative L2; 0 only if they are equal to the bit."""
    return 0.0 if torch.equal(found, first) else distance(found, first.double())
