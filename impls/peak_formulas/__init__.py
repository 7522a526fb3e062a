"""Closed formulas of a call's peak bytes, a file per backend, found by its name.

`nearest` bounds the peak of a backend or a dtype that has no formula.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..masks import needs_matrix
from ..problem import Problem
from . import cascade
from .sdpa import flash_bytes_in_half
from .sizes import Sizes

FAMILIES = {
    "hf": "sdpa",
    "hf:sdpa": "sdpa",
    "hf:eager": "fused",
    "hf:flash_attention_2": "triton",
    "hf:flash_attention_3": "triton",
    "hf:flash_attention_4": "triton",
}
"""Backends without a formula of their own, and the one that allocates alike: the same kernel, or
the scores of all heads.
"""
FLASH = ("sdpa", "sdpa:flash", "hf", "hf:sdpa", "kv_cache")  # torch's flash kernel on a CPU
UNBOUNDED = (
    "kv_cache:blocks",
)  # of a few queries oneDNN's buffers exceed what half precision saves


def block_peak(problem: Problem, layer_bytes: int) -> int | None:
    """Peak bytes of a block from those of its layer, forward; None with gradients.

    The norm of x is alive while the layer runs. Later y, the feed-forward layer's values and their
    GELU are alive together.
    """
    if problem.backward:
        return None
    p = problem
    x = p.batch * p.seq_len * p.d_model * p.item_bytes
    return max(x + layer_bytes, x + 2 * x * p.d_ff // p.d_model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A peak is at most that of `backend` on `problem` and `more_bytes`; `words`: whose it is."""

    backend: str
    problem: Problem
    more_bytes: int
    words: str


def nearest(backend: str, problem: Problem, threads: int) -> Iterator[Near]:
    """The nearest first; whether they have a formula is not known here.

    In half precision a backend needs no more than in fp32, if its conversions are added.
    tests/impls/peak_formulas/test_nearest.py measures it, for scope core on a CPU.
    """
    in_fp32 = replace(problem, dtype="fp32")
    half = problem.dtype != "fp32"
    family = FAMILIES.get(backend)
    if family is None:
        # torch's math kernel, which computes in fp32, from copies
        copies = backend == "kv_cache" and problem.d_k != problem.d_v
        if half and backend not in UNBOUNDED and not copies:
            z, more_bytes = Sizes(in_fp32), 0
            if backend == "sdpa:math":  # computes in fp32, from copies of q, k and v
                more_bytes = z.q + z.k + z.v
            elif backend in FLASH:
                more_bytes = flash_bytes_in_half(problem, threads)
            elif backend == "cascade":
                parts = cascade.parts(problem)
                more_bytes = max(flash_bytes_in_half(one, threads) for one in parts)
            words = "at most what its formula says of fp32"
            yield Near(backend=backend, problem=in_fp32, more_bytes=more_bytes, words=words)
        return
    more_bytes = _more_than_family(backend, problem, threads)
    alike = f"at most what {family} needs"
    if not (half and family == "fused"):  # hf:eager has its softmax in fp32
        yield Near(backend=family, problem=problem, more_bytes=more_bytes, words=alike)
    if half:
        words = f"at most what {family} needs in fp32"
        yield Near(backend=family, problem=in_fp32, more_bytes=more_bytes, words=words)


def _more_than_family(backend: str, problem: Problem, threads: int) -> int:
    """Bytes that Hugging Face's function allocates besides."""
    z, group = Sizes(problem), problem.heads // problem.kv_heads
    repeated = group * (z.k + z.v) if group > 1 else 0
    if backend != "hf:eager":
        half = problem.dtype != "fp32" and backend in FLASH
        tiles = flash_bytes_in_half(problem, threads) if half else 0
        under_mask = repeated if backend in FLASH and needs_matrix(problem) else 0
        return z.o + tiles + under_mask  # the output in the order of the layer
    beside_sinks = z.weights if problem.sinks else 0  # the scores, while gpt-oss's go on in a copy
    return repeated + beside_sinks + (z.s if problem.dtype != "fp32" else 0)
