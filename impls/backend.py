"""The tensors that a backend is given, and what a backend is.

A backend is a file in this folder that defines `prepare` at its top level; the file's name is the
backend's name. Beside `prepare` it may define, each with the signature of the method of the same
name in `Backend` plus, where the file has VARIANTS, a keyword `variant`:

    NEEDS = ("package",)          looked for without importing it
    VARIANTS = ("math", "flash")  adds the backends file:math and file:flash; the bare name has variant ""
    PINS_KERNEL = True            says that a variant is the name of the kernel that must run: another one is then an error
    COMPILES = True               says that `prepare` compiles, or imports large packages: it gets more time for that, and memory beside
                                  the budget
    EXACTNESS = "approximate"     says that the result is near to attention by design, or "other": not attention at all. Neither is held to
                                  the error of an honest implementation; what is not said is "exact"
    PLAIN_OPERATIONS = True       promises that each operation allocates its result and nothing else: matmul, softmax, views and the
                                  like, no fused kernel. Then the code can be run on device "meta" to predict its peak bytes
    MASKS = ("padding", "local")  masks beside none that it computes (problem.MASKS are all); the others are refused
    unavailable, why_not, context, attention_weights, peak_bytes

Backends may also live outside this folder: registry.py says where they are looked for.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from .problem import Dtype, Problem

TORCH_DTYPE: dict[Dtype, torch.dtype] = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}

Call = Callable[[], Tensor]
"""The call to time: no arguments, returns the output. With gradients asked for, the output hangs on
the inputs' graph.
"""


class Inputs(NamedTuple):
    """What attention starts from; the three names follow torch.nn.MultiheadAttention.

    Scope "core": q [batch, heads, seq_len, d_k], k [batch, kv_heads, kv_seq_len, d_k], v [batch,
    kv_heads, kv_seq_len, d_v]. Scope "layer": x [batch, seq_len, d_model], and twice the same
    source [batch, kv_seq_len, d_model]; in self-attention (kv_seq_len == seq_len) all three are one
    tensor.
    """

    query: Tensor
    key: Tensor
    value: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The layer's weights, [out_features, in_features] as in torch.nn.Linear. Head i owns the rows
    i*d_k .. (i+1)*d_k - 1.
    """

    w_q: Tensor  # [heads * d_k, d_model]
    b_q: Tensor  # [heads * d_k]
    w_k: Tensor  # [kv_heads * d_k, d_model]
    b_k: Tensor  # [kv_heads * d_k]
    w_v: Tensor  # [kv_heads * d_v, d_model]
    b_v: Tensor  # [kv_heads * d_v]
    w_o: Tensor  # [d_model, heads * d_v]
    b_o: Tensor  # [d_model]

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.w_q, self.b_q, self.w_k, self.b_k, self.w_v, self.b_v, self.w_o, self.b_o)


class Backend(Protocol):
    """One attention implementation, as `impls.load(name)` returns it."""

    @property
    def name(self) -> str: ...

    @property
    def variant(self) -> str:
        """The part after the colon, or ""."""

    @property
    def pinned_kernel(self) -> str | None:
        """The variant, where the file says PINS_KERNEL and the user named one: the only kernel that
        may run.
        """

    @property
    def compiles(self) -> bool:
        """Whether the file says COMPILES."""

    @property
    def exactness(self) -> str:
        """What the file says: one of source.EXACTNESS."""

    @property
    def plain_operations(self) -> bool:
        """Whether the file says PLAIN_OPERATIONS."""

    def unavailable(self, device: torch.device) -> str | None:
        """What is missing here whatever the problem, in words; None when nothing is. Never
        raises.
        """

    def why_not(self, problem: Problem, device: torch.device) -> str | None:
        """Why this backend cannot compute the problem here, in words for the user; None when it
        can. Never raises.

        What `unavailable` says comes first.
        """

    def prepare(self, problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
        """Do all set-up (layout, compilation, tuning) and return the call to time. `weights` is
        None in scope "core".

        The call may carry an attribute `facts`, a JSON-ready dict of what was chosen: it becomes
        the row's `configuration`. One that uses weights of its own in place of `weights` carries
        them as `parameters`, a sequence of tensors: gradients are taken of those instead.
        """

    def context(self, problem: Problem) -> AbstractContextManager[object]:
        """What must be in force while the call runs. Entered round a series of calls, outside the
        timed region.
        """

    def attention_weights(
        self, problem: Problem, inputs: Inputs, weights: Weights | None
    ) -> Tensor:
        """softmax(QK^T/sqrt(d_k)), [batch, heads, seq_len, kv_seq_len]. Raises ValueError where the
        backend has none.
        """

    def peak_bytes(self, problem: Problem, device: torch.device, threads: int) -> int | None:
        """Extra bytes above inputs and weights at the highest point of a call, output included;
        None where no formula holds.
        """


def make_inputs(problem: Problem, device: torch.device, seed: int) -> Inputs:
    """Normal random inputs, equal for equal seeds on one kind of device; they carry gradients if
    the problem asks for them.
    """
    generator = (
        torch.Generator(device=device).manual_seed(seed) if device.type != "meta" else None
    )  # which has no numbers

    def normal(*shape: int) -> Tensor:
        dtype = TORCH_DTYPE[problem.dtype]
        if device.type == "meta":
            return torch.empty(shape, dtype=dtype, device=device, requires_grad=problem.backward)
        return torch.randn(
            shape, generator=generator, dtype=dtype, device=device, requires_grad=problem.backward
        )

    p = problem
    if p.scope == "layer":
        x = normal(p.batch, p.seq_len, p.d_model)
        source = x if p.kv_seq_len == p.seq_len else normal(p.batch, p.kv_seq_len, p.d_model)
        return Inputs(x, source, source)
    return Inputs(
        normal(p.batch, p.heads, p.seq_len, p.d_k),
        normal(p.batch, p.kv_heads, p.kv_seq_len, p.d_k),
        normal(p.batch, p.kv_heads, p.kv_seq_len, p.d_v),
    )
