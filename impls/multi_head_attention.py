"""Multi-head attention as a torch module, computed by any backend."""

from dataclasses import replace

import torch
from torch import Tensor

from .backend import Backend, Inputs, Weights
from .discovery.loading import load
from .layer import make_weights
from .problem import Problem


class MultiHeadAttention(torch.nn.Module):
    """A layer whose backend can be changed while the weights stay.

    Batch and lengths of `problem` are ignored: they come from each call's tensors. A causal layer
    called with n_q != n_kv needs a problem with kv_seq_len != seq_len, and so with causal_align.
    """

    def __init__(
        self,
        problem: Problem,
        backend: str = "fused",
        device: torch.device | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.problem = problem
        drawn = make_weights(problem, device or torch.device("cpu"), seed)
        for name in Weights.__dataclass_fields__:
            self.register_parameter(name, torch.nn.Parameter(getattr(drawn, name).detach()))
        self.backend = backend

    @property
    def backend(self) -> str:
        """The name of the backend for the next call; can be set."""
        return self._backend.name

    @backend.setter
    def backend(self, name: str) -> None:
        self._backend: Backend = load(name)

    def weights(self) -> Weights:
        return Weights(**{name: self.get_parameter(name) for name in Weights.__dataclass_fields__})

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Output [batch, n_q, d_model] and, if requested, weights [batch, heads, n_q, n_kv].

        Raises ValueError if the backend cannot compute these sizes here, or cannot return weights.
        """
        inputs, weights = Inputs(query, key, value), self.weights()
        problem = self._problem_of(inputs, weights)
        refusal = self._backend.why_not(problem, query.device)
        if refusal:
            raise ValueError(f"{self.backend}: {refusal}")
        with self._backend.context(problem):
            p = self._backend.attention_weights(problem, inputs, weights) if need_weights else None
            return self._backend.prepare(problem, inputs, weights)(), p

    def _problem_of(self, inputs: Inputs, weights: Weights) -> Problem:
        p = self.problem
        wants_gradients = torch.is_grad_enabled() and any(
            tensor.requires_grad for tensor in (*inputs, *weights.tensors())
        )
        return replace(
            p,
            batch=inputs.query.shape[0],
            seq_len=inputs.query.shape[1],
            kv_seq_len=inputs.key.shape[1],
            causal_align=p.causal_align if p.kv_seq_len != p.seq_len else "",
            scope="layer",
            passes="forward+backward" if wants_gradients else "forward",
        )
