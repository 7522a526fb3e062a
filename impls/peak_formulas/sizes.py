"""Bytes of the tensors that an attention computation makes: the terms of every `peak_bytes`
formula.

The formulas say what was seen, allocation by allocation, in torch 2.13 on the CPU
(tests/impls/test_peak_bytes.py holds them to it).
"""

from dataclasses import dataclass

from ..problem import Problem


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of one problem. Empty rows are left out, since no backend computes them, but for the terms
    called `whole_`.
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
        """The scores of all heads; the weights are as large."""
        return self._bytes(self.problem.heads, self.rows, self.problem.kv_seq_len)

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

    @property
    def hidden(self) -> int:
        """The boolean mask of one head, one byte per pair."""
        return self.rows * self.problem.kv_seq_len if self.problem.causal else 0

    def making_hidden(self, copies: int = 1) -> int:
        """The moment at which the mask is made, from positions in int64: higher than all else only
        beside very few queries.
        """
        positions = 8 * (self.problem.kv_seq_len + (1 + copies) * self.rows)
        return self.hidden * copies + positions if self.problem.causal else 0

    @property
    def padded(self) -> int:
        """The moment at which zeros are put where the empty rows were; 0 where there are none."""
        return self.o + self.whole_o if self.problem.empty_rows else 0

    @property
    def projected(self) -> int:
        """q, k and v of the layer."""
        return self.whole_q + self.k + self.v

    @property
    def after_core(self) -> int:
        """The highest moment of the layer after its core: heads are merged, by a copy unless they
        lie so already; then W_O.
        """
        p = self.problem
        merge = self.whole_o if p.heads > 1 and p.seq_len > 1 else 0
        return self.whole_o + max(merge, self.y)

    def copied(self, tensor_bytes: int, heads: int, length: int) -> int:
        """What batched matmul adds to read heads that were split off a projection: a copy, unless
        batch and heads are one stride apart.
        """
        apart = (
            self.problem.scope == "layer" and self.problem.batch > 1 and heads > 1 and length > 1
        )
        return tensor_bytes if apart else 0

    def _bytes(self, heads: int, length: int, width: int) -> int:
        return self.problem.batch * heads * length * width * self.problem.item_bytes


def plain_operations(problem: Problem, device_type: str) -> bool:
    """Whether plain matmul and softmax allocate nothing but their results. On the CPU, oneDNN's
    matmul for half precision does.
    """
    return device_type == "cuda" or problem.dtype == "fp32"
