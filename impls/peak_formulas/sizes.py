"""Bytes of the tensors that attention makes: the terms of the formulas for peak bytes.

The formulas follow the allocations of torch 2.13 on the CPU, as its profiler shows them
(tests/impls/peak_formulas/test_peak_bytes.py checks them).
"""

from dataclasses import dataclass

from ..problem import Problem

SCALE_BYTES = 8  # a float64
POSITION_BYTES = 8  # an int64
MASKS = ("none", "local", "chunked")  # whose bytes are known


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes for one problem. Empty rows do not count, except in `whole_` terms: no backend computes
    them.
    """

    problem: Problem

    @property
    def rows(self) -> int:
        return self.problem.seq_len - self.problem.empty_rows

    @property
    def q(self) -> int:
        return self._bytes(self.problem.heads, self.rows, self.problem.d_k)

    @property
    def k(self) -> int:
        return self._bytes(self.problem.kv_heads, self.problem.kv_seq_len, self.problem.d_k)

    @property
    def v(self) -> int:
        return self._bytes(self.problem.kv_heads, self.problem.kv_seq_len, self.problem.d_v)

    @property
    def o(self) -> int:
        """The output of all heads."""
        return self._bytes(self.problem.heads, self.rows, self.problem.d_v)

    @property
    def s(self) -> int:
        """The scores of all heads."""
        return self._bytes(self.problem.heads, self.rows, self.problem.kv_seq_len)

    @property
    def weights(self) -> int:
        """The attention weights of all heads, with a column for the sinks if there are any."""
        return self.s + (self.column if self.problem.sinks else 0)

    @property
    def column(self) -> int:
        return self._bytes(self.problem.heads, self.rows, 1)

    @property
    def kept(self) -> int:
        """What autograd keeps of all heads for the gradients of the scores, without the mask: the
        weights, with a softcap also the result of tanh.
        """
        return self.weights + (self.s if self.problem.softcap else 0)

    @property
    def factors(self) -> int:
        """Bytes of the factors of the scores that autograd keeps, each as a float64."""
        return SCALE_BYTES * (2 if self.problem.softcap else 1)

    @property
    def y(self) -> int:
        """The layer's output."""
        return self._bytes(1, self.problem.seq_len, self.problem.d_model)

    @property
    def whole_q(self) -> int:
        return self._bytes(self.problem.heads, self.problem.seq_len, self.problem.d_k)

    @property
    def whole_o(self) -> int:
        return self._bytes(self.problem.heads, self.problem.seq_len, self.problem.d_v)

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

    @property
    def padded(self) -> int:
        """The moment when zeros are put in place of the empty rows; 0 if there are none."""
        return self.o + self.whole_o if self.problem.empty_rows else 0

    @property
    def projected(self) -> int:
        """q, k and v of the layer."""
        return self.whole_q + self.k + self.v

    @property
    def after_core(self) -> int:
        """The highest moment of the layer after its core: merging heads, which copies unless memory
        is in that order, then W_O.
        """
        p = self.problem
        merge = self.whole_o if p.heads > 1 and p.seq_len > 1 else 0
        return self.whole_o + max(merge, self.y)

    def copied(self, tensor_bytes: int, heads: int, length: int) -> int:
        """What batched matmul adds to read heads split from a projection: a copy, unless batch and
        heads have a common stride.
        """
        p = self.problem
        strides_differ = p.scope == "layer" and p.batch > 1 and heads > 1 and length > 1
        return tensor_bytes if strides_differ else 0

    def _bytes(self, heads: int, length: int, width: int) -> int:
        return self.problem.batch * heads * length * width * self.problem.item_bytes


def allocates_results_only(problem: Problem, device_type: str) -> bool:
    """Whether matmul and softmax allocate only their results.

    On the CPU oneDNN's matmul for half precision also allocates buffers.
    """
    return device_type == "cuda" or problem.dtype == "fp32"
