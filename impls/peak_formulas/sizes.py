"""Bytes of the tensors that attention makes: the terms of the formulas for peak bytes.

The formulas follow the allocations of torch 2.13 on the CPU, as its profiler shows them
(tests/impls/peak_formulas/test_peak_bytes.py checks them).
"""

from ..problem import Device, Problem

SCALE_BYTES = 8  # a float64
POSITION_BYTES = 8  # an int64
KNOWN_MASKS = ("none", "local", "chunked")  # whose bytes are known


class Sizes:
    """Bytes for one problem. Empty rows do not count, except in `whole_` terms: no backend computes
    them.
    """

    def __init__(self, problem: Problem) -> None:
        p = self.problem = problem
        self.rows = p.seq_len - p.empty_rows

        def size(heads: int, length: int, width: int) -> int:
            return p.batch * heads * length * width * p.item_bytes

        self.q = size(p.heads, self.rows, p.d_k)
        self.k = size(p.kv_heads, p.kv_seq_len, p.d_k)
        self.v = size(p.kv_heads, p.kv_seq_len, p.d_v)
        self.s = size(p.heads, self.rows, p.kv_seq_len)  # the scores of all heads
        self.column = size(p.heads, self.rows, 1)  # beside them, such as of sinks
        self.weights = self.s + (self.column if p.sinks else 0)
        # What autograd keeps for the scores' gradients, without the mask: the weights, with a
        # softcap also the result of tanh; and the factors of the scores, each a float64.
        self.kept = self.weights + (self.s if p.softcap else 0)
        self.factors = SCALE_BYTES * (2 if p.softcap else 1)
        self.o = size(p.heads, self.rows, p.d_v)  # the output of all heads
        self.whole_o = size(p.heads, p.seq_len, p.d_v)
        self.y = size(1, p.seq_len, p.d_model)  # the layer's output
        self.projected = size(p.heads, p.seq_len, p.d_k) + self.k + self.v  # q, k, v of the layer
        # The moment when zeros are put in place of the empty rows; 0 if there are none.
        self.padded = self.o + self.whole_o if p.empty_rows else 0
        # The highest moment of the layer after its core: merging heads, which copies unless memory
        # is in that order, then W_O.
        merge = self.whole_o if p.heads > 1 and p.seq_len > 1 else 0
        self.after_core = self.whole_o + max(merge, self.y)

    def mask(self, copies: int = 1) -> int:
        """The boolean mask, one byte per pair, for the rows of so many heads; 0 without one."""
        pairs = self.rows * self.problem.kv_seq_len
        if self.problem.mask == "none":
            return pairs * copies if self.problem.causal else 0
        return pairs * (copies if self.rows > 1 else 1)

    def making_mask(self, copies: int = 1) -> int:
        """The highest moment while the mask is made, from int64 positions (mask_tensors.py)."""
        p, pairs = self.problem, self.rows * self.problem.kv_seq_len
        rows, keys = POSITION_BYTES * self.rows, POSITION_BYTES * p.kv_seq_len
        if p.mask == "none":
            return self.mask(copies) + keys + (1 + copies) * rows if p.causal else 0
        triangle = pairs if p.causal else 0
        distances = POSITION_BYTES * pairs if p.mask == "local" else keys + rows  # else of chunks
        seen = triangle + pairs + max(distances, triangle) + keys + 2 * rows
        repeated = self.mask(copies) if copies > 1 and self.rows > 1 else 0
        return max(seen, 2 * pairs + repeated + rows)

    def copied(self, tensor_bytes: int, heads: int, length: int) -> int:
        """What batched matmul adds to read heads split from a projection: a copy, unless batch and
        heads have a common stride.
        """
        p = self.problem
        strides_differ = p.scope == "layer" and p.batch > 1 and heads > 1 and length > 1
        return tensor_bytes if strides_differ else 0


def knows_scores(problem: Problem, device: Device) -> bool:
    """Whether the bytes of the scores are all there are: of masks that are known, and where matmul
    and softmax allocate only their results. On the CPU oneDNN's matmul for half precision also
    allocates buffers.
    """
    p = problem
    return p.mask in KNOWN_MASKS and not p.lengths and (device.type == "cuda" or p.dtype == "fp32")
