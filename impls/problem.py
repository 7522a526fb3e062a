"""What to compute, not how: the shape of one attention problem.

A field of Problem is an axis. What others need of it stands beside the field (axes/axis.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import inf, nan, sqrt
from typing import Any, Literal, Protocol, get_args, get_type_hints

from .axes import kv_storage
from .axes import lengths as ragged
from .axes.axis import Axis, axis
from .masks import MASKS, WINDOWED

Dtype = Literal["fp32", "bf16", "fp16"]
Passes = Literal["forward", "backward", "forward+backward"]
Scope = Literal["core", "layer", "block"]
CausalAlign = Literal["", "top_left", "bottom_right"]
KvDtype = Literal["same", "int8", "fp8"]

ALL_MASKS = ("none", *MASKS)
FEED_FORWARD_FACTOR = 4
"""Width of a block's feed-forward layer over d_model (Vaswani et al. 2017, table 3)."""
ITEM_BYTES: dict[Dtype, int] = {"fp32": 4, "bf16": 2, "fp16": 2}


class Device(Protocol):
    """A torch.device, for files that do not import torch."""

    @property
    def type(self) -> str: ...


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _width(of: Mapping[str, Any]) -> float:
    """Of one head, if the heads share d_model; NaN if that is not known."""
    return of["d_model"] / of["heads"] if of["d_model"] and of["heads"] else nan


def _corner(of: Mapping[str, Any]) -> str:
    return "top_left" if of["causal"] and of["kv_seq_len"] == of["seq_len"] else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The shape of one multi-head attention. Sizes left at 0 take their default when constructed.

    `scope` "core" starts from q, k and v per head; "layer" starts from the layer's inputs and adds
    the projections and W_O; "block" is a pre-norm transformer block around the layer, with a feed-
    forward layer of width FEED_FORWARD_FACTOR * d_model. `causal_align` is the corner from which
    the causal triangle starts; it must be given if kv_seq_len != seq_len. `mask` (masks/, a file
    each) applies in addition to `causal`. `window` is the mask's size, 0 for masks without one.
    Nothing assumes heads * d_k == d_model. Raises ValueError for values that describe no problem.

    `lengths` (axes/lengths.py) makes a ragged batch of one row: sequences of unequal length lie one
    after the other, without padding, and a query sees keys of its own sequence only, up to its own
    position if `causal`. So the inputs are tokens and nothing else: what kernels for unequal
    lengths take, and what several documents in one row of a training batch are. A backend that pads
    makes the padding itself. seq_len and kv_seq_len are the sums and need not be given.
    """

    batch: int = axis(
        "Sequences per batch; 1 if not given.",
        alias="B",
        option="Batch sizes, as 1,8; 1 if not given.",
        given=1,
        part=lambda p: f"b{p.batch}",
        symbol="B",
    )
    seq_len: int = axis(
        "Length of the query sequence in tokens; 1k = 1024, 1m = 1024 * 1024.",
        default=0,
        alias="N",
        option="Sequence lengths, as 512,1k,8k (1k = 1024).",
        symbol="N",
    )
    kv_seq_len: int = axis(
        "Length of the key and value sequence, if it differs from seq_len.",
        default=0,
        option="Key and value lengths, if they differ from the query's.",
        symbol="N_kv",
        usual=lambda of: of["seq_len"],
        usual_text="N",
    )
    d_model: int = axis(
        "Width of the model: the last dimension of the layer's input.",
        option="Model widths.",
        part=lambda p: f"d{p.d_model}",
        symbol="d_model",
    )
    heads: int = axis(
        "Number of query heads.",
        alias="h",
        option="Numbers of query heads.",
        part=lambda p: f"h{p.heads}",
        symbol="h",
    )
    kv_heads: int = axis(
        "Number of key and value heads, if it differs from heads (grouped-query attention); heads"
        " must be a multiple of it.",
        default=0,
        option="Numbers of key and value heads, if they differ from --heads.",
        part=lambda p: f"hkv{p.kv_heads}" if p.kv_heads != p.heads else "",
        symbol="h_kv",
        usual=lambda of: of["heads"],
        usual_text="h",
    )
    d_k: int = axis(
        "Width of one head's queries and keys; d_model / heads if not given.",
        default=0,
        part=lambda p: f"dk{p.d_k}" if p.d_k * p.heads != p.d_model else "",
        symbol="d_k",
        usual=_width,
        usual_text="d_model/h",
    )
    d_v: int = axis(
        "Width of one head's values; d_model / heads if not given.",
        default=0,
        part=lambda p: f"dv{p.d_v}" if p.d_v * p.heads != p.d_model else "",
        symbol="d_v",
        usual=_width,
        usual_text="d_model/h",
        in_rows="sizes, with defaults filled in",
    )
    lengths: str = axis(
        "Sequences of unequal length, packed into one row without padding, in place of seq_len:"
        " lengths such as [2k, 300, 1k]; 2q2k_32q1s1k, as in vLLM's benchmarks: 2 sequences of 2048"
        " tokens, and 32 of 1024 of which one is new;"
        " lognormal:count=16:mean=1k:sigma=0.8:seed=1; or file:PATH.",
        default="",
        option="Sequences packed into one row, in place of --seq-len: 2k,300,1k or 2q2k_32q1s1k.",
        scenario_wide=True,
        part=lambda p: ragged.short_name(p.lengths) if p.lengths else "",
        text=lambda value: ragged.words(value) if value else "",
        in_rows=(
            "the sequences of a ragged batch, packed into one row: `2q2k_32q1s1k` is 2 sequences of"
            " 2048 tokens and 32 of 1024 of which one is new; `seq_len` and `kv_seq_len` are the"
            ' sums. "" if the batch is not ragged; absent in earlier versions'
        ),
        opt_in=True,
        earliest="",
    )
    dtype: Dtype = axis(
        "Number format: fp32, bf16 or fp16.",
        default="fp32",
        option="fp32, bf16, fp16 (also float32, bfloat16, float16); fp32 if not given.",
        given="fp32",
        scenario_wide=True,
        part=lambda p: p.dtype,
        in_rows="`fp32`, `bf16`, `fp16`",
    )
    causal: bool = axis(
        "Whether a token attends only to itself and to earlier tokens.",
        default=False,
        option="Causal mask: hide later tokens.",
        given=False,
        scenario_wide=True,
        part=lambda p: (
            ("causal" if p.kv_seq_len == p.seq_len else f"causal_{p.causal_align}")
            if p.causal
            else ""
        ),
        text=lambda value: "causal" if value else "not causal",
        in_rows="whether a query sees only keys up to its own position",
    )
    causal_align: CausalAlign = axis(
        "Corner at which the causal triangle starts; required if kv_seq_len differs from seq_len.",
        default="",
        scenario_wide=True,
        text=lambda value: f"aligned {value}",
        usual=_corner,
        goes_with="causal",
        in_rows='`top_left` or `bottom_right`; "" if not causal',
    )
    mask: str = axis(
        f"Mask in addition to causal: {_listed(ALL_MASKS)}.",
        default="none",
        option=f"{', '.join(ALL_MASKS)}; none if not given.",
        given="none",
        scenario_wide=True,
        part=lambda p: f"{p.mask}{p.window or ''}" if p.mask != "none" else "",
        text=lambda value: "" if value == "none" else f"{value} mask",
        in_rows=(
            f"the mask in addition to `causal`: `{'`, `'.join(ALL_MASKS)}` (scenarios/README.md)."
            " Absent in rows of the first version, which had no masks"
        ),
        earliest="none",
    )
    window: int = axis(
        "Size of a mask that has one: "
        + ", ".join(f"{MASKS[name].window} ({name})" for name in WINDOWED)
        + ".",
        default=0,
        option=f"Sizes of the masks that have one: {', '.join(WINDOWED)}.",
        scenario_wide=True,
        text=lambda value: f"window\u00a0{value}" if value else "",
        goes_with="mask",
        in_rows="size of a mask that has one, else 0; absent if `mask` is",
        earliest=0,
    )
    softcap: float = axis(
        "Cap c of the scores, c * tanh(score / c) of the scaled score, before the mask (Gemma 2);"
        " 0 is none.",
        default=0.0,
        option="Caps of the scores, as 50 (Gemma 2); 0, none, if not given.",
        scenario_wide=True,
        part=lambda p: f"cap{p.softcap:g}" if p.softcap else "",
        text=lambda value: f"softcap\u00a0{value:g}" if value else "",
        in_rows="the scaled scores s became `softcap` * tanh(s / `softcap`); 0 for none",
        opt_in=True,
        earliest=0.0,
    )
    sinks: bool = axis(
        "Whether each head has a learned score, its sink, beside those of the keys: softmax runs"
        " over both, and the sink has no value (gpt-oss).",
        default=False,
        option="Give each head a sink, a further score in the softmax (gpt-oss).",
        scenario_wide=True,
        part=lambda p: "sinks" if p.sinks else "",
        text=lambda value: "sinks" if value else "",
        in_rows="whether each head had a sink, a learned score without a value, in its softmax",
        opt_in=True,
        earliest=False,
    )
    passes: Passes = axis(
        "What is computed: forward, backward (alone, after an untimed forward pass) or"
        " forward+backward.",
        default="forward",
        option="forward, backward, forward+backward; forward if not given.",
        given="forward",
        scenario_wide=True,
        part=lambda p: p.passes,
        text=lambda value: value if "+" in str(value) else f"{value} pass",
        in_rows="`forward`, `backward`, `forward+backward`",
    )
    scope: Scope = axis(
        "core starts from q, k and v per head; layer adds the input projections and the output"
        " projection; block is a pre-norm transformer block around the layer.",
        default="core",
        option="core (from q, k, v), layer (with projections) or block; core if not given.",
        given="core",
        scenario_wide=True,
        part=lambda p: p.scope,
        in_rows=(
            "`core`: from q, k, v per head; `layer`: with all four projections; `block`: a pre-norm"
            " transformer block around the layer, with a feed-forward layer of width 4 d_model"
        ),
    )

    latent: int = kv_storage.LATENT
    rope: int = kv_storage.ROPE
    page: int = kv_storage.PAGE
    kv_dtype: KvDtype = kv_storage.KV_DTYPE
    prefix: int = kv_storage.PREFIX

    def __post_init__(self) -> None:
        for name, value in ragged.packed(self).items() if self.lengths else ():
            object.__setattr__(self, name, value)
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
            n_kv = self.kv_seq_len or self.seq_len
            defaults["window"] = MASKS[self.mask].default_window(n_kv)
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
        if not 0 <= self.softcap < inf:
            raise ValueError(f"softcap is {self.softcap}; wanted a positive number, or 0 for none")
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
                f"window ({self.window}) with mask {self.mask}, which has none; set mask to"
                f" {_listed(WINDOWED)}"
            )
        longer_keys = self.causal and self.seq_len < self.kv_seq_len
        if self.windowed and not same_length and not longer_keys:
            raise ValueError(
                f"mask {self.mask} places each query at a key, but seq_len is {self.seq_len} and"
                f" kv_seq_len {self.kv_seq_len}; make them equal, or set causal, causal_align and a"
                " longer kv_seq_len"
            )
        kv_storage.check(self)

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
    return mask in WINDOWED


_TYPES = get_type_hints(Problem)
CHOICES: dict[str, tuple[str, ...]] = {
    name: words for name, of in _TYPES.items() if (words := get_args(of))
} | {"mask": ALL_MASKS}


def _type(name: str) -> Any:
    words = tuple(word for word in CHOICES.get(name, ()) if word)
    return Literal[words] if words else _TYPES[name]


AXES: dict[str, Axis] = {
    one.name: replace(one.metadata["axis"], type=_type(one.name)) for one in fields(Problem)
}
"""By name, in the order of their declaration, in which cases are planned."""
OPT_IN: dict[str, Any] = {
    one.name: one.default for one in fields(Problem) if one.metadata["axis"].opt_in
}
"""Axes that only some backends compute, with the value that all do."""
