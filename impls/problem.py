"""What to compute, never how: the shape of one attention problem."""

from dataclasses import dataclass
from math import sqrt
from typing import Literal, get_args

Dtype = Literal["fp32", "bf16", "fp16"]
Passes = Literal["forward", "backward", "forward+backward"]
Scope = Literal["core", "layer"]
CausalAlign = Literal["", "top_left", "bottom_right"]
Mask = Literal["none", "padding", "random", "local", "strided", "blocks"]

CHOICES: dict[str, tuple[str, ...]] = {
    "dtype": get_args(Dtype),
    "passes": get_args(Passes),
    "scope": get_args(Scope),
    "causal_align": get_args(CausalAlign),
    "mask": get_args(Mask),
}
MASKS: tuple[Mask, ...] = get_args(Mask)

USUAL_LOCAL, USUAL_BLOCKS = 128, 4
ITEM_BYTES: dict[Dtype, int] = {"fp32": 4, "bf16": 2, "fp16": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One shape of multi-head attention. Sizes left at 0 take the usual value, and are never 0
    afterwards.

    `scope` "core" starts from q, k and v per head; "layer" starts from the layer's inputs and adds
    the projections and W_O. `causal_align` says which corner the triangle starts from; it must be
    given where kv_seq_len != seq_len. `mask`: one of mask_rules.py, beside `causal`; `window` is
    its size where it has one: keys to either side (local, 128 if not given), the stride (strided,
    the root of kv_seq_len) or the number of blocks (blocks, 4); 0 for all others. Nothing assumes
    heads * d_k == d_model. Raises ValueError for values that describe no problem.
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
        for name in ("batch", "seq_len", "d_model", "heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; wanted 1 or more")
        for name in ("kv_seq_len", "kv_heads", "d_k", "d_v", "window"):
            if getattr(self, name) < 0:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; wanted 1 or more, or nothing for the usual"
                    " value"
                )
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}; wanted one of:"
                    f" {', '.join(word for word in allowed if word)}"
                )
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
        if self.causal and not self.causal_align and self.kv_seq_len not in (0, self.seq_len):
            raise ValueError(
                f"causal with kv_seq_len ({self.kv_seq_len}) != seq_len ({self.seq_len}) has two"
                " readings; set causal_align to top_left or bottom_right"
            )
        if self.window and not self.windowed:
            raise ValueError(
                f"window ({self.window}) with mask {self.mask}, which has none; set mask to local,"
                " strided or blocks"
            )
        if (
            self.windowed
            and self.kv_seq_len not in (0, self.seq_len)
            and not (self.causal and self.seq_len < self.kv_seq_len)
        ):
            raise ValueError(
                f"mask {self.mask} places each query at a key, but seq_len is {self.seq_len} and"
                f" kv_seq_len {self.kv_seq_len}; make them equal, or set causal with causal_align"
                " beside a longer kv_seq_len"
            )
        usual: dict[str, int | str] = {
            "kv_seq_len": self.kv_seq_len or self.seq_len,
            "kv_heads": self.kv_heads or self.heads,
            "d_k": self.d_k or self.d_model // self.heads,
            "d_v": self.d_v or self.d_model // self.heads,
        }
        if self.causal and usual["kv_seq_len"] == self.seq_len:
            usual["causal_align"] = "top_left"  # both corners are the same one
        if self.windowed and not self.window:
            stride = max(1, round(sqrt(usual["kv_seq_len"])))  # type: ignore[arg-type]
            usual["window"] = {"local": USUAL_LOCAL, "strided": stride}.get(self.mask, USUAL_BLOCKS)
        for name, value in usual.items():
            object.__setattr__(self, name, value)

    @property
    def scale(self) -> float:
        """1/sqrt(d_k), the factor that keeps the variance of scores at 1 (Vaswani et al. 2017,
        section 3.2.1).
        """
        return 1.0 / sqrt(self.d_k)

    @property
    def item_bytes(self) -> int:
        return ITEM_BYTES[self.dtype]

    @property
    def backward(self) -> bool:
        """Whether gradients are asked for."""
        return self.passes != "forward"

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


def sum_of_range(first: int, last: int) -> int:
    """first + ... + last, 0 where the range is empty."""
    return (first + last) * (last - first + 1) // 2 if last >= first else 0
