"""The fields of a problem, a line for each axis, with its type and its default, in the order of
plans, ids, rows and options; and what follows from them.

All else about an axis stands in its file in axes/.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

Dtype = Literal["fp32", "bf16", "fp16"]
Passes = Literal["forward", "backward", "forward+backward"]
Scope = Literal["core", "layer", "block"]
CausalAlign = Literal["", "top_left", "bottom_right"]
KvDtype = Literal["same", "int8", "fp8"]

FEED_FORWARD_FACTOR = 4
"""Width of a block's feed-forward layer over d_model (Vaswani et al. 2017, table 3)."""
ITEM_BYTES: dict[Dtype, int] = {"fp32": 4, "bf16": 2, "fp16": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemFields:
    """What files below `Problem` see of one: axes and masks."""

    batch: int
    seq_len: int = 0
    kv_seq_len: int = 0
    d_model: int
    heads: int
    kv_heads: int = 0
    d_k: int = 0
    d_v: int = 0
    lengths: str = ""
    dtype: Dtype = "fp32"
    causal: bool = False
    causal_align: CausalAlign = ""
    mask: str = "none"
    window: int = 0
    softcap: float = 0.0
    sinks: bool = False
    passes: Passes = "forward"
    scope: Scope = "core"
    latent: int = 0
    rope: int = 0
    page: int = 0
    kv_dtype: KvDtype = "same"
    prefix: int = 0

    @property
    def scale(self) -> float:
        """1/sqrt(d_k): keeps the variance of scores at 1 (Vaswani et al. 2017, section 3.2.1)."""
        return 1.0 / sqrt(self.d_k)

    @property
    def item_bytes(self) -> int:
        return ITEM_BYTES[self.dtype]

    @property
    def backward(self) -> bool:
        """Whether gradients are requested."""
        return self.passes != "forward"

    @property
    def d_ff(self) -> int:
        """The width of a block's feed-forward layer."""
        return FEED_FORWARD_FACTOR * self.d_model

    @property
    def causal_offset(self) -> int:
        """Query i sees the keys j <= i + offset."""
        return self.kv_seq_len - self.seq_len if self.causal_align == "bottom_right" else 0

    @property
    def empty_rows(self) -> int:
        """Leading queries that see no key at all; their output is zero by definition."""
        return min(self.seq_len, max(0, -self.causal_offset)) if self.causal else 0
