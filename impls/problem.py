"""What to compute, not how: the shape of one attention problem."""

from dataclasses import dataclass
from math import sqrt
from typing import Literal, get_args

Dtype = Literal["fp32", "bf16", "fp16"]
Passes = Literal["forward", "backward", "forward+backward"]
Scope = Literal["core", "layer", "block"]
CausalAlign = Literal["", "top_left", "bottom_right"]
Mask = Literal["none", "padding", "random", "local", "strided", "blocks"]

CHOICES: dict[str, tuple[str, ...]] = {
    "dtype": get_args(Dtype),
    "passes": get_args(Passes),
    "scope": get_args(Scope),
    "causal_align": get_args(CausalAlign),
    "mask": get_args(Mask),
}
ALL_MASKS: tuple[Mask, ...] = get_args(Mask)

DEFAULT_LOCAL_WINDOW, DEFAULT_BLOCKS = 128, 4
FEED_FORWARD_FACTOR = 4
"""Width of a block's feed-forward layer over d_model (Vaswani et al. 2017, table 3)."""
ITEM_BYTES: dict[Dtype, int] = {"fp32": 4, "bf16": 2, "fp16": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The shape of one multi-head attention. Sizes left at 0 take their default when constructed.

    `scope` "core" starts from q, k and v per head; "layer" starts from the layer's inputs and adds
    the projections and W_O; "block" is a pre-norm transformer block around the layer, with a feed-
    forward layer of width FEED_FORWARD_FACTOR * d_model. `causal_align` is the corner from which
    the causal triangle starts; it must be given if kv_seq_len != seq_len. `mask` (masks/rules.py)
    applies in addition to `causal`. `window` is the mask's size, 0 for masks without one: keys to
    either side (local, default 128), stride (strided, default sqrt(kv_seq_len)) or number of blocks
    (blocks, default 4). Nothing assumes heads * d_k == d_model. Raises ValueError for values that
    describe no problem.
    """

    batch: int
    seq_len: int
    d_model: int
    heads: int
    kv_seq_len: int = 0
    kv_heads: int = 0
    d_k: int = 0
    d_v: int = 0
    dtype: Dtype = "fp32"
    causal: bool = False
    causal_align: CausalAlign = ""
    mask: Mask = "none"
    window: int = 0
    passes: Passes = "forward"
    scope: Scope = "core"

    def __post_init__(self) -> None:
        self._check()
        defaults: dict[str, int | str] = {
            "kv_seq_len": self.kv_seq_len or self.seq_len,
            "kv_heads": self.kv_heads or self.heads,
            "d_k": self.d_k or self.d_model // self.heads,
            "d_v": self.d_v or self.d_model // self.heads,
        }
        if self.causal and defaults["kv_seq_len"] == self.seq_len:
            defaults["causal_align"] = "top_left"  # both corners are the same one
        if self.windowed and not self.window:
            stride = max(1, round(sqrt(self.kv_seq_len or self.seq_len)))
            windows = {"local": DEFAULT_LOCAL_WINDOW, "strided": stride, "blocks": DEFAULT_BLOCKS}
            defaults["window"] = windows[self.mask]
        for name, value in defaults.items():
            object.__setattr__(self, name, value)

    def _check(self) -> None:
        """Raises ValueError if the values describe no problem; runs before defaults are filled."""
        for name in ("batch", "seq_len", "d_model", "heads"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {value}; wanted 1 or more")
        for name in ("kv_seq_len", "kv_heads", "d_k", "d_v", "window"):
            if (value := getattr(self, name)) < 0:
                raise ValueError(
                    f"{name} is {value}; wanted 1 or more, or nothing for the usual value"
                )
        for name, allowed in CHOICES.items():
            if (value := getattr(self, name)) not in allowed:
                choices = ", ".join(choice for choice in allowed if choice)
                raise ValueError(f"{name} is {value!r}; wanted one of: {choices}")
        if not (self.d_k and self.d_v) and self.d_model % self.heads:
            raise ValueError(
                f"d_model ({self.d_model}) is not a multiple of heads ({self.heads}); choose other"
                " sizes, or give d_k and d_v"
            )
        if self.heads % (self.kv_heads or self.heads):
            raise ValueError(
                f"heads ({self.heads}) must be a multiple of kv_heads ({self.kv_heads})"
            )
        if self.causal_align and not self.causal:
            raise ValueError(
                "causal_align without causal; set causal: true, or leave causal_align out"
            )
        same_length = self.kv_seq_len in (0, self.seq_len)
        if self.causal and not self.causal_align and not same_length:
            raise ValueError(
                f"causal with kv_seq_len ({self.kv_seq_len}) != seq_len ({self.seq_len}) is"
                " ambiguous; set causal_align to top_left or bottom_right"
            )
        if self.scope == "block" and not same_length:
            raise ValueError(
                f"scope block is self-attention, but kv_seq_len ({self.kv_seq_len}) is not seq_len"
                f" ({self.seq_len}); leave kv_seq_len out, or set scope to layer"
            )
        if self.window and not self.windowed:
            raise ValueError(
                f"window ({self.window}) with mask {self.mask}, which has none; set mask to local,"
                " strided or blocks"
            )
        longer_keys = self.causal and self.seq_len < self.kv_seq_len
        if self.windowed and not same_length and not longer_keys:
            raise ValueError(
                f"mask {self.mask} places each query at a key, but seq_len is {self.seq_len} and"
                f" kv_seq_len {self.kv_seq_len}; make them equal, or set causal, causal_align and a"
                " longer kv_seq_len"
            )

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
    def windowed(self) -> bool:
        """Whether the mask has a window."""
        return windowed(self.mask)

    @property
    def empty_rows(self) -> int:
        """Leading queries that see no key at all; their output is zero by definition."""
        return min(self.seq_len, max(0, -self.causal_offset)) if self.causal else 0


def windowed(mask: str) -> bool:
    return mask in ("local", "strided", "blocks")
