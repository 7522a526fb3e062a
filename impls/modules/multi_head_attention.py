"""Multi-head attention as a torch module, computed by any backend."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from ..backend import Inputs, Weights
from ..discovery.loading import Backend, load
from ..layer import make_weights, merge_heads, split_heads
from ..problem import Problem
from ..shared.mask_tensors import given_mask

NAMES = tuple(Weights.__dataclass_fields__)


class MultiHeadAttention(torch.nn.Module):
    """A layer whose backend can be changed while the weights stay.

    Batch and lengths of `problem` are ignored: they come from each call's tensors. A causal layer
    called with n_q != n_kv needs a problem with kv_seq_len != seq_len, and so with causal_align.
    Raises ValueError for a problem with sinks.
    """

    def __init__(
        self,
        problem: Problem,
        backend: str = "fused",
        device: torch.device | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if problem.sinks:
            raise ValueError("this module has no sinks; give a problem with sinks=False")
        self.problem = problem
        drawn = make_weights(problem, device or torch.device("cpu"), seed)
        for name in NAMES:
            self.register_parameter(name, torch.nn.Parameter(getattr(drawn, name).detach()))
        self.backend = backend

    @property
    def backend(self) -> str:
        """The name of the backend for the next call; can be set."""
        return self._backend.name

    @backend.setter
    def backend(self, name: str) -> None:
        self._backend: Backend = load(name)
        self._problems: dict[Hashable, Problem] = {}  # that it can compute, by their sizes

    def weights(self) -> Weights:
        return Weights(**{name: getattr(self, name) for name in NAMES})

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        need_weights: bool = False,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Output [batch, n_q, d_model] and, if requested, weights [batch, heads, n_q, n_kv].

        `mask` [n_q, n_kv] or [batch, heads, n_q, n_kv], or sizes of 1, applies in addition to that
        of the problem: boolean, True where a query attends, or floating, added to the scores
        (shared/mask_tensors.py). Raises ValueError if the backend cannot compute these sizes here,
        cannot return weights or takes no mask.
        """
        p, inputs, weights = self.problem, Inputs(query, key, value), self.weights()
        learns = torch.is_grad_enabled() and any(
            tensor.requires_grad for tensor in (*inputs, *weights.tensors())
        )
        problem = self._checked(
            query.device,
            masked=mask is not None,
            batch=query.shape[0],
            seq_len=query.shape[1],
            kv_seq_len=key.shape[1],
            causal_align=p.causal_align if p.kv_seq_len != p.seq_len else "",
            scope="layer",
            passes="forward+backward" if learns else "forward",
        )
        backend, shown = self._backend, None
        with backend.context(problem):
            if mask is None:
                if need_weights:
                    split = split_heads(problem, inputs, weights)
                    shown = backend.attention_weights(problem, Inputs(*split))
                return backend.prepare(problem, inputs, weights)(), shown
            q, k, v = split_heads(problem, inputs, weights)
            given, empty = given_mask(mask, problem, q.dtype)
            o = backend.under_mask(problem, q, k, v, given).masked_fill(empty, 0.0)
            if need_weights:
                shown = backend.attention_weights(problem, Inputs(q, k, v, mask=given))
                shown = shown.masked_fill(empty, 0.0)
        return linear(merge_heads(o), weights.w_o, weights.b_o), shown

    def extend(self, x: Tensor, keys: Tensor, values: Tensor, length: int) -> Tensor:
        """The output [batch, n, d_model] of new tokens x, of the same shape, in a causal layer.

        They follow `length` tokens whose projected keys are in keys[:, :, :length] [batch,
        kv_heads, longest, d_k], likewise the values; their own are written after them. The backend
        gets its core's problem, the causal triangle from the bottom right. Raises ValueError if the
        layer is not causal, or the backend cannot compute it.
        """
        (batch, n, _), end, w = x.shape, length + x.shape[1], self.weights()
        if not self.problem.causal or self.problem.mask != "none":
            raise ValueError("only a causal layer without another mask can extend a cache")
        core = self._checked(
            x.device,
            batch=batch,
            seq_len=n,
            kv_seq_len=end,
            causal=n > 1,  # a single query sees all keys, without a mask
            causal_align="bottom_right" if 1 < n < end else "",
            scope="core",
            passes="forward",
        )
        new = replace(core, seq_len=n, kv_seq_len=n, causal_align="", scope="layer")
        q, k, v = split_heads(new, Inputs(x, x, x), w)
        keys[:, :, length:end], values[:, :, length:end] = k, v
        inputs = Inputs(q, keys[:, :, :end], values[:, :, :end])
        with self._backend.context(core):
            o = self._backend.prepare(core, inputs, None)()
        return linear(merge_heads(o), w.w_o, w.b_o)

    def _checked(self, device: torch.device, *, masked: bool = False, **changes: Any) -> Problem:
        """The layer's problem with these changes, which the backend was asked about once. Raises
        ValueError if it cannot compute it.
        """
        sizes = masked, device, *changes.items()
        if sizes not in self._problems:
            problem, backend = replace(self.problem, **changes), self._backend
            ask = backend.why_not_under_mask if masked else backend.why_not
            if refusal := ask(problem, device):
                raise ValueError(f"{self.backend}: {refusal}")
            self._problems[sizes] = problem
        return self._problems[sizes]
