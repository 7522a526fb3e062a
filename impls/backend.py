"""What a backend is, and the tensors that it gets.

A backend is a file in this folder that defines `prepare` at its top level; the file's name is the
backend's name. The file may also define these eight functions: unavailable, why_not, compile_ahead,
context, build_mask, under_mask, peak_bytes, each with the signature of the method of that name in
`Backend`, and attention_weights(problem, inputs, mask), [batch, heads, n_q, n_kv], of inputs as in
scope "core"; `mask` is a caller's (shared/given_mask.py), or None for the problem's own, whose
inputs lack the leading queries that see no key. If the file has VARIANTS, each gets a keyword
`variant`, and a keyword for each of PARAMETERS. It may assign these constants, written out:

    NEEDS = ("package",)          packages it imports besides torch; looked up, not imported
    VARIANTS = ("math", "flash")  adds the backends file:math and file:flash; the bare name has
                                  variant ""
    PARAMETERS = {"rank": int}    what a name may give, as file[rank=64]: int, float, bool or str;
                                  each function gets it by keyword, None if the name does not
    PINS_KERNEL = True            a variant is the name of the kernel that must run: running any
                                  other kernel is an error
    COMPILES = True               `prepare` compiles or imports large packages: it gets more time,
                                  and memory beyond the budget. Names of variants: these compile,
                                  the others only import
    EXACTNESS = "approximate"     the result is only close to attention by design, or "other": not
                                  attention at all. Neither is held to the error limit of an exact
                                  backend. The default is "exact"
    INPUT_ORDER = "model"         in scope "core" the tensors lie in memory as a model of Hugging
                                  Face has them (shared/inputs.py). The default is "heads"
    MASKS = ("padding", "local")  the masks it computes besides "none" (problem.ALL_MASKS lists
                                  them); it is not asked to compute others
    COMPUTES = ("softcap",)       the axes that it computes of those that are opt_in (axes/)

`peak_bytes` of a backend in this folder may also be in a file of its own, peak_formulas/<name>.py;
one in the backend's file takes precedence. discovery/registry.py says where else backends may be.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from .problem import Dtype, Problem

TORCH_DTYPE: dict[Dtype, torch.dtype] = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}

Call = Callable[[], Tensor]
"""The call to time: no arguments, returns the output, which requires grad if the problem does."""

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""The core of attention, from q [batch, heads, n_q, d_k], k [batch, kv_heads, n_kv, d_k] and
v [batch, kv_heads, n_kv, d_v] to the output [batch, heads, n_q, d_v].
"""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of attention, named as in torch.nn.MultiheadAttention; unpacks to the first three.

    Scope "core": q [batch, heads, seq_len, d_k], k [batch, kv_heads, kv_seq_len, d_k], v [batch,
    kv_heads, kv_seq_len, d_v], unless they are stored otherwise (shared/kv_tensors.py). Scope
    "layer": x [batch, seq_len, d_model], and the source [batch, kv_seq_len, d_model] twice; in
    self-attention (kv_seq_len == seq_len) all three are one tensor.
    Scope "block": x three times. `more`: what else the problem has, by name. Gradients are taken of
    its floating-point tensors, too. "sinks" [heads], if the problem has them.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    more: Mapping[str, Tensor] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self.query, self.key, self.value))

    def named(self) -> dict[str, Tensor]:
        """All tensors by their names; in self-attention of a layer three names have one tensor."""
        return {"query": self.query, "key": self.key, "value": self.value, **self.more}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The layer's weights, [out_features, in_features] as in torch.nn.Linear.

    Head i owns the rows i*d_k .. (i+1)*d_k - 1.
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
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockWeights(Weights):
    """Those of the layer, and of what a pre-norm block has around it (layer.block)."""

    gain_1: Tensor  # [d_model], of the norm before attention
    shift_1: Tensor
    gain_2: Tensor  # [d_model], of the norm before the feed-forward layer
    shift_2: Tensor
    w_up: Tensor  # [d_ff, d_model]
    b_up: Tensor  # [d_ff]
    w_down: Tensor  # [d_model, d_ff]
    b_down: Tensor  # [d_model]


def leaves(inputs: Inputs, weights: Weights | None) -> list[Tensor]:
    """The tensors that gradients are taken of, each once."""
    more = (tensor for tensor in inputs.more.values() if tensor.is_floating_point())
    tensors = (*inputs, *more, *(weights.tensors() if weights else ()))
    return list({id(tensor): tensor for tensor in tensors}.values())


class Backend(Protocol):
    """One attention implementation, as `impls.load(name)` returns it."""

    @property
    def name(self) -> str: ...

    @property
    def variant(self) -> str:
        """The part of the name after the colon, or ""."""

    @property
    def pinned_kernel(self) -> str | None:
        """The only kernel that may run: the variant, if the file has PINS_KERNEL."""

    @property
    def compiles(self) -> bool:
        """The file has COMPILES."""

    @property
    def generates_code(self) -> bool:
        """`prepare` or `compile_ahead` compiles a kernel, which takes many seconds."""

    @property
    def compiles_ahead(self) -> bool:
        """The file has `compile_ahead`."""

    @property
    def exactness(self) -> str:
        """The file's EXACTNESS, one of source.EXACTNESS."""

    def unavailable(self, device: torch.device) -> str | None:
        """What is missing here for any problem, as text; None if nothing is. Never raises."""

    def why_not(self, problem: Problem, device: torch.device) -> str | None:
        """Why this backend cannot compute the problem here, as text for the user; None if it can.

        A reason from `unavailable` comes first. Never raises.
        """

    def why_not_under_mask(self, problem: Problem, device: torch.device) -> str | None:
        """As why_not, for the problem under a mask tensor that the caller passes."""

    def compile_ahead(self, problem: Problem, device: torch.device) -> None:
        """Compile what `prepare` needs, if the file can do so without the inputs.

        It is a phase of its own, with the time that compiling gets.
        """

    def prepare(self, problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
        """Do all set-up (layout, compilation, tuning) and return the call to time. It may view
        inputs, never copy them: their numbers change between calls, those of weights do not.

        `weights` is None in scope "core", and BlockWeights in scope "block", where layer.in_scope
        wraps the layer. The call may have an attribute `facts`, a JSON-ready
        dict of the choices made, which becomes the row's `configuration`. With EXACTNESS "other", a
        call that uses weights of its own instead of `weights` has them in an attribute
        `parameters`, a sequence of tensors: gradients are computed for those instead.
        """

    def build_mask(self, problem: Problem, device: torch.device) -> object:
        """The mask under which the call computes, in the backend's own form, so that its cost can
        be measured alone; None if it builds none.
        """

    def context(self, problem: Problem) -> AbstractContextManager[object]:
        """Settings that must hold while the call runs.

        Entered around a series of calls, outside the timed region.
        """

    def attention_weights(
        self, problem: Problem, inputs: Inputs, weights: Weights | None
    ) -> Tensor:
        """softmax(QK^T/sqrt(d_k)), [batch, heads, seq_len, kv_seq_len].

        Raises ValueError if the backend cannot return them.
        """

    def under_mask(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """The core's output [batch, heads, n_q, d_v] under a caller's mask (shared/given_mask.py).

        q, k and v as in scope "core"; causal and mask of the problem are in `mask` already.
        """

    def weights_under_mask(self, problem: Problem, q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
        """The attention weights [batch, heads, n_q, n_kv] of `under_mask`.

        Raises ValueError if the backend cannot return them.
        """

    def peak_bytes(self, problem: Problem, device: torch.device, threads: int) -> int | None:
        """Peak bytes of a call above inputs and weights, output included; None if unknown."""
