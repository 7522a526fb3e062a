"""Whether a backend's output for a sequence is the same to the bit, called again, alone and in a
batch, and in another process.

A kernel may split its sums by the size of the batch or by what is idle, and sums in another order
round otherwise: then a model's answer depends on who else asks (He et al. 2025, Defeating
Nondeterminism in LLM Inference, Thinking Machines). A call for each sequence makes it independent
with any backend; what that costs is timed where it is needed.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import torch

from ...impls.axes.kv_storage import AS_USUAL
from ...impls.backend import Inputs
from ...impls.discovery.loading import Backend
from ...impls.problem import Problem
from ...impls.shared.inputs import make_inputs
from ..measure.clock import clock_for
from ..measure.conditions import conditions_for, contended, count_flagged
from ..measure.error_limits import distance
from ..rows.findings import Finding
from ..stats.intervals import ratio_interval
from ._shared import attend, exact_backends, peak_bytes

QUESTION = (
    "Is a sequence's output equal to the bit in a second call, alone and in a batch, and in another"
    " process?"
)
PARTS = {"process": (1, 2, 3, 4, 5)}  # each in a new one: equal digests are equal outputs
BATCH = 4
LONGEST = 2048  # tokens
BLOCKS, BLOCK_MS, MOST_CALLS = 4, 8.0, 50  # of a process


def run(problem: Problem, device: torch.device, seed: int, *, process: int) -> Iterator[Finding]:
    """A finding for each exact backend that compiles nothing, forward, keys and values as they are.

    `again_error_l2_ratio`, `batch_error_l2_ratio`: how far the output of a second call, and that of
    the first of BATCH sequences called alone, is from that in the batch; 0 if they are equal to the
    bit. `output_digest`: of its bits. Another for each whose output differs in a batch: the time of
    BATCH calls, joined, over that of one, in the same blocks, and the peak bytes of both ways.
    """
    whole = replace(problem, lengths="", batch=BATCH, **AS_USUAL)
    n_q, n_kv = min(whole.seq_len, LONGEST), min(whole.kv_seq_len, LONGEST)
    whole = replace(whole, seq_len=n_q, kv_seq_len=n_kv, scope="core", passes="forward")
    inputs = make_inputs(whole, device, seed)
    q, k, v = (one[:1].contiguous() for one in inputs)
    alone = Inputs(q, k, v, inputs.more)
    for backend in exact_backends(whole, device):
        first, again = (attend(backend, whole, inputs) for _ in range(2))
        single = attend(backend, replace(whole, batch=1), alone)
        bits = first.cpu().contiguous().view(torch.uint8).numpy().tobytes()
        yield Finding(
            backend=backend.name,
            dtype=whole.dtype,
            seq_len=n_q,
            kv_seq_len=n_kv,
            batch=BATCH,
            again_error_l2_ratio=_error(again, first),
            batch_error_l2_ratio=_error(single, first[:1]),
            output_digest=sha256(bits).hexdigest()[:12],
        )
        padded = whole.mask == "padding"  # entries see other keys: one alone is another problem
        if not padded and not torch.equal(single, first[:1]):
            yield _each_alone(backend, whole, inputs, process)


@torch.no_grad()
def _each_alone(backend: Backend, whole: Problem, inputs: Inputs, process: int) -> Finding:
    """Each sequence by a call of its own, against one call."""
    one, device = replace(whole, batch=1), inputs.query.device
    q, k, v = (tensor.split(1) for tensor in inputs)
    entries = [Inputs(*entry, more=inputs.more) for entry in zip(q, k, v, strict=True)]
    with backend.context(whole):
        batch = backend.prepare(whole, inputs, None)
        calls = [backend.prepare(one, entry, None) for entry in entries]
        both = (lambda: torch.cat([call() for call in calls]), batch)
        alone, together = (peak_bytes(call, device) for call in both)
        return Finding(
            backend=backend.name,
            kv_seq_len=whole.kv_seq_len,
            batch=whole.batch,
            process=process,
            alone_peak_bytes=alone,
            batch_peak_bytes=together,
            **timed(both, device),
        )


def timed(both: tuple[Callable[[], object], ...], device: torch.device) -> dict[str, Any]:
    """The time of the first call over that of the second, in blocks that make both equally often,
    and during how many of them other work wanted the same cores (None: unknown).
    """
    clock, watch = clock_for(device), conditions_for(device)
    call_ms = max([clock.time_ms(call) for call in (*both, *both)][len(both) :])  # warm
    timers = [clock.timer(call, call_ms) for call in both]
    times = min(MOST_CALLS, max(1, int(BLOCK_MS / max(call_ms, 1e-3))))
    blocks, flags = [], []
    for _ in range(BLOCKS):
        watch.before()
        blocks.append([timer.sample(times).block_ms for timer in timers])
        flags.append(contended(watch.after()))
    samples = ([list(one)] for one in zip(*blocks, strict=True))
    ratio = ratio_interval(*samples).value
    return {"alone_ratio": ratio, "blocks": BLOCKS, "contended_blocks": count_flagged(flags)}


def _error(found: torch.Tensor, first: torch.Tensor) -> float:
    """Relative L2; 0 only if they are equal to the bit."""
    return 0.0 if torch.equal(found, first) else distance(found, first.double())
