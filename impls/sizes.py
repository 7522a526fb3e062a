"""Bytes of the tensors that an attention computation makes: the terms of every `peak_bytes` formula."""

from dataclasses import dataclass

from .problem import Problem


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of one problem, leaving out its empty rows, which no backend computes."""

    problem: Problem

    @property
    def rows(self) -> int:
        return self.problem.seq_len - self.problem.empty_rows

    @property
    def q(self) -> int:
        return self._per_head(self.rows, self.problem.d_k) * self.problem.heads

    @property
    def k(self) -> int:
        return self._per_head(self.problem.kv_seq_len, self.problem.d_k) * self.problem.kv_heads

    @property
    def v(self) -> int:
        return self._per_head(self.problem.kv_seq_len, self.problem.d_v) * self.problem.kv_heads

    @property
    def o(self) -> int:
        """One head output after another, or merged: [batch, heads, rows, d_v]."""
        return self._per_head(self.rows, self.problem.d_v) * self.problem.heads

    @property
    def s(self) -> int:
        """The scores of all heads."""
        return self._per_head(self.rows, self.problem.kv_seq_len) * self.problem.heads

    @property
    def y(self) -> int:
        """The layer's output."""
        return self._per_head(self.problem.seq_len, self.problem.d_model)

    @property
    def hidden(self) -> int:
        """The boolean mask."""
        return self.rows * self.problem.kv_seq_len if self.problem.causal else 0

    def _per_head(self, rows: int, columns: int) -> int:
        return self.problem.batch * rows * columns * self.problem.item_bytes
