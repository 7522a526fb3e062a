"""What a backend is, and the tensors that it gets.

A backend is a file in this folder that defines `prepare` at its top level; the file's name is the
backend's name. The file may also define six functions: unavailable, why_not, compile_ahead,
context, build_mask and peak_bytes, each with the signature of the method of that name in
discovery/loading.py's `Backend`. If the file has VARIANTS, each gets a keyword `variant`, and a
keyword for each of PARAMETERS. It may assign these constants, written out:

    NEEDS = ("package",)          packages it imports besides torch; looked up, not imported
    VARIANTS = ("math", "flash")  adds the backends file:math and file:flash; the bare name has
                                  variant ""
    PARAMETERS = {"rank": int}    what a name may give, as file[rank=64]: int, float, bool or str;
                                  each function gets it by keyword, None if the name does not
    COMPUTES = ("softcap",)       what it computes beyond plain and causal attention: axes that are
                                  opt_in (problem.py); masks by their names, or "mask" for all;
                                  "mask tensor": Inputs.mask. It is not asked for others. (MASKS is
                                  read as a part of COMPUTES.)
    EXACTNESS = "approximate"     the result is only close to attention by design, or "other": not
                                  attention at all. Neither is held to the error limit of an exact
                                  backend. The default is "exact"
    COMPILES = True               `prepare` compiles or imports large packages: it gets more time,
                                  and memory beyond the budget
    PINS_KERNEL = True            a variant is the name of the kernel that must run: running any
                                  other kernel is an error
    INPUT_ORDER = "model"         in scope "core" the tensors lie in memory as a model of Hugging
                                  Face has them (shared/inputs.py). The default is "heads"

`peak_bytes` of a backend in this folder may also be in peak_formulas/, under the file's name in its
FORMULAS; one in the backend's file takes precedence. discovery/registry.py says where else backends
may be.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .problem import Dtype

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
    its floating-point tensors, too. "sinks" [heads], if the problem has them. `mask`: a caller's
    (shared/mask_tensors.py), in place of the problem's; only for backends with "mask tensor".
    """

    query: Tensor
    key: Tensor
    value: Tensor
    more: Mapping[str, Tensor] = field(default_factory=dict)
    mask: Tensor | None = None

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
