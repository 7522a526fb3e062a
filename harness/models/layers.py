"""What a model's layers compute: the shapes of their attention, how many layers have each, and what
they ask of attention in each phase, as problems that can be measured.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from pydantic import RootModel

from ...impls.problem import Dtype, Problem
from ..files.errors import BadInput
from ..files.printable import spaced

Stack = Literal["decoder", "encoder", "cross"]
"""Cross-attention belongs to the decoder: its keys are the encoder's outputs."""
Reach = Literal["full", "sliding", "chunked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionLayer:
    """Softmax attention of one layer; lengths come with the question, except where one is fixed.

    `window`: a query sees itself and the window - 1 tokens before it ("sliding"), or the tokens of
    its own chunk of that many ("chunked"); 0 if it sees all. `seq_len` and `kv_seq_len`: the only
    length that the model takes there, 0 if any. `stores_cache`: False in a decoder's layer that
    reads the keys and values of an earlier one, and in layers that keep none. `latent`: numbers
    that the layer keeps for a token in place of keys and values, and makes them of at each call
    (multi-head latent attention: DeepSeek-V2, arXiv:2405.04434); 0 if it keeps themselves.
    `rotated`: of these, the part of the keys that all heads share. `softcap`: what scores are
    capped at, by tanh, 0 if they are not. `sinks`: each head has a logit of its own that counts in
    the denominator only. `also`: what the model does to scores that no backend here does.
    """

    stack: Stack
    heads: int
    kv_heads: int
    d_k: int
    d_v: int
    causal: bool
    reach: Reach = "full"
    window: int = 0
    seq_len: int = 0
    kv_seq_len: int = 0
    stores_cache: bool = True
    latent: int = 0
    rotated: int = 0
    softcap: float = 0.0
    sinks: bool = False
    also: tuple[str, ...] = ()

    def text(self) -> str:
        """decoder, 32 heads of 128, 8 for keys and values, the last 4,096 tokens."""
        parts = [f"{self.stack}, {self.heads} heads of {self.d_k}"]
        if self.d_v != self.d_k:
            parts.append(f"values of {self.d_v}")
        if self.kv_heads != self.heads:
            parts.append(f"{self.kv_heads} for keys and values")
        if self.latent:
            parts.append(f"{self.latent} numbers kept for a token")
        reaches = {"sliding": "the last", "chunked": "chunks of"}
        if self.reach in reaches:
            parts.append(f"{reaches[self.reach]} {spaced(self.window)} tokens")
        lengths = {"of": self.seq_len, "to": self.kv_seq_len}
        parts += [f"{word} {spaced(length)} tokens" for word, length in lengths.items() if length]
        if self.stack == "decoder" and not self.stores_cache:
            parts.append("with the keys of an earlier layer")
        if self.softcap:
            parts.append(f"scores capped at {self.softcap:g}")
        if self.sinks:
            parts.append("attention sinks")
        return ", ".join((*parts, *self.also))

    def divided(self, parts: int) -> "AttentionLayer":
        """The share of one of `parts` devices of tensor parallelism: whole heads.

        Key and value heads are repeated where there are fewer than devices. Raises ValueError if
        the heads cannot be divided so.
        """
        if self.heads % parts:
            raise ValueError(f"{self.heads} heads cannot be divided by {parts}")
        if self.kv_heads % parts and parts % self.kv_heads:
            raise ValueError(
                f"{self.kv_heads} key and value heads can be neither divided by nor repeated for"
                f" {parts}"
            )
        kv_heads = max(1, self.kv_heads // parts)
        return replace(self, heads=self.heads // parts, kv_heads=kv_heads)

    def kv_numbers(self, context: int) -> int:
        """Keys and values that the layer reads for the next token, of a context of so many, as
        numbers: in Hugging Face's DynamicCache min(context, window) tokens of a layer with a
        window or chunks, up to one token that it has in hand. Devices that share the heads of a
        latent have all of it each.
        """
        tokens = self.kv_seq_len or context
        tokens = tokens if self.reach == "full" else min(tokens, self.window)
        return (self.latent or self.kv_heads * (self.d_k + self.d_v)) * tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLayer:
    """A layer that mixes tokens by something that is not measured here; `what` names it."""

    what: str


Layer = AttentionLayer | OtherLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How many weights a model has; `words`: how they were counted.

    `quantized`: those of them that `method` stores in `bits` each, with their share of scales; ""
    for none. The others have the dtype of the model. `products`: those that one token is multiplied
    by in all layers, of experts as many as it is sent to; 0 if that is not known.
    """

    parameters: int
    words: str
    method: str = ""
    quantized: int = 0
    bits: float = 0.0
    products: int = 0

    def size_bytes(self, item_bytes: int) -> int:
        """Of all of them; `item_bytes`: of a number that is not quantized."""
        return (self.parameters - self.quantized) * item_bytes + int(self.quantized * self.bits / 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model's layers, each distinct one with how many there are, in the order of the first.

    `max_context`: the longest context that the model itself takes, in tokens. `dtype`: that of its
    weights, as torch names it. `weight_bytes`: of all files beside the configuration; `weights`:
    by its configuration, or `uncounted` says why not. None: not known. `left_out`: parts whose
    attention is not among the layers, such as an encoder of images.
    """

    name: str
    model_type: str
    d_model: int
    layers: tuple[tuple[Layer, int], ...]
    max_context: int | None
    dtype: str | None
    weight_bytes: int | None = None
    weights: Weights | None = None
    uncounted: str = ""
    left_out: tuple[str, ...] = ()

    def as_json(self) -> str:
        return RootModel[Model](self).model_dump_json()

    @classmethod
    def of_json(cls, text: str | bytes) -> "Model":
        """What `as_json` made. Raises ValueError for anything else."""
        return RootModel[Model].model_validate_json(text, strict=True).root

    def attention(self) -> Iterator[tuple[AttentionLayer, int]]:
        """The layers that compute attention."""
        for layer, count in self.layers:
            if isinstance(layer, AttentionLayer):
                yield layer, count

    def others(self) -> dict[str, int]:
        """What is not measured, and in how many layers."""
        return {layer.what: count for layer, count in self.layers if isinstance(layer, OtherLayer)}

    def divided(self, parts: int) -> "Model":
        """One device's share under tensor parallelism. Raises BadInput."""
        try:
            layers = [
                (layer.divided(parts) if isinstance(layer, AttentionLayer) else layer, count)
                for layer, count in self.layers
            ]
        except ValueError as error:
            raise BadInput(
                f"tp {parts}: {self.name}: {error}; wanted a number that divides the heads"
            ) from None
        return replace(self, layers=tuple(layers))


Counted = tuple[tuple[Layer, int], ...]
"""Each distinct layer with how often it occurs, in the order of first occurrence."""


def counted(layers: Iterable[tuple[Layer, int]]) -> Counted:
    """Layers with how many there are of each, equal ones together."""
    counts: dict[Layer, int] = {}
    for layer, count in layers:
        if count > 0:
            counts[layer] = counts.get(layer, 0) + count
    return tuple(counts.items())


# ---- questions -----------------------------------------------------------------------------------


Phase = Literal["prefill", "chunk", "decode", "verify", "training"]
PHASES: tuple[Phase, ...] = get_args(Phase)
GENERATING: tuple[Phase, ...] = ("chunk", "decode", "verify")
"""Those in which queries come after tokens that a cache holds: no encoder takes part."""
QUERIES: dict[Phase, int] = {"chunk": 512, "decode": 1, "verify": 5}
"""Tokens that are computed at once, if not given: a chunk (Agrawal et al. 2023, SARATHI,
arXiv:2308.16369), or the last token and four drafted ones (Leviathan et al. 2023, arXiv:2211.17192,
figure 3: best at 3 to 7).
"""
KV_BITS = {"fp8": 8.0, "q8": 8.5, "q4": 4.5}
"""Bits of a number in a quantized cache: fp8 with one scale for a tensor, as in vLLM; q8 and q4
with one in fp16 for 32 numbers (GGML's q8_0 and q4_0).
"""
PAGE_TOKENS = 16  # of a block of vLLM's pool, unless its --block-size says another number
DTYPES: dict[str, Dtype] = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One layer's attention in one phase, and how many layers ask it.

    `problem` is None if it cannot be measured, and `why` says why.
    """

    layer: AttentionLayer
    phase: Phase
    count: int
    problem: Problem | None
    why: str = ""


def questions(
    model: Model, phase: Phase, *, context: int, batch: int, dtype: Dtype, queries: int = 0
) -> Iterator[Question]:
    """One for each distinct attention of the phase; `context` in tokens.

    Prefill computes all tokens of the context at once, chunk and verify its last `queries` (see
    QUERIES), decode one more after it, training all with gradients. An encoder takes part in
    prefill and training only. Raises BadInput for a context beyond the model's own limit.
    """
    if model.max_context is not None and context > model.max_context:
        raise BadInput(
            f"{model.name}: a context of {context} tokens; wanted at most the model's own"
            f" {model.max_context}"
        )
    for layer, count in model.attention():
        if phase in GENERATING and layer.stack == "encoder":
            continue
        computed = min(queries or QUERIES.get(phase, context), context)
        problem, why = _problem(model, layer, phase, context, computed, batch, dtype)
        yield Question(layer=layer, phase=phase, count=count, problem=problem, why=why)


def _problem(
    model: Model,
    layer: AttentionLayer,
    phase: Phase,
    context: int,
    queries: int,
    batch: int,
    dtype: Dtype,
) -> tuple[Problem | None, str]:
    if layer.also:
        return None, f"no backend here has {' and '.join(layer.also)}"
    seq_len = layer.seq_len or queries
    n_kv = layer.kv_seq_len or layer.seq_len or context
    kept = layer.window - 1 + seq_len  # of a window: what its first query sees, and the queries
    if layer.reach != "full" and phase in GENERATING:
        n_kv = min(n_kv, kept)
    # the one query of a decode step sees all that is kept
    within = layer.reach == "full" or n_kv <= layer.window or seq_len == 1
    sliding = layer.reach == "sliding"  # chunks are counted from the first key that is kept
    problem = Problem(
        batch=batch,
        seq_len=seq_len,
        kv_seq_len=n_kv,
        d_model=model.d_model,
        heads=layer.heads,
        kv_heads=layer.kv_heads,
        d_k=layer.d_k,
        d_v=layer.d_v,
        dtype=dtype,
        causal=layer.causal,
        causal_align="bottom_right" if layer.causal and phase in GENERATING else "",
        mask="none" if within else "local" if sliding else "chunked",
        window=0 if within else layer.window - sliding,
        softcap=layer.softcap,
        sinks=layer.sinks,
        passes="forward+backward" if phase == "training" else "forward",
    )
    return problem, ""


def cached_bytes(asked: Question, *, context: int) -> int:
    """Of a question's own keys and values, the bytes that `cache_bytes` counts too.

    At the call k and v are the cache's own tensors, in prefill as in decode; so they are of a layer
    that reads those of an earlier one. Those of a latent are made of it: then fewer than none are,
    since the keys are copies and what they were copied from is there as long as the values.
    """
    one, layer = asked.problem, asked.layer
    if one is None or asked.phase == "training" or layer.stack == "encoder":
        return 0
    if layer.latent:
        numbers = layer.heads * (layer.d_k - layer.rotated) * one.kv_seq_len
        return -one.batch * numbers * one.item_bytes
    return one.batch * layer.kv_numbers(context) * one.item_bytes


def appended_bytes(asked: Question) -> int:
    """What is there beside the cache while the cache takes up this layer's keys and values.

    Hugging Face's DynamicCache appends by copying, keys first: in prefill q, k and v wait beside
    their copies, else the keys, or the values, are there twice. 0 where nothing is appended, or a
    latent, which takes less than the call.
    """
    one, layer = asked.problem, asked.layer
    if one is None or asked.phase == "training" or not layer.stores_cache or layer.latent:
        return 0
    q = layer.heads * layer.d_k * one.seq_len
    if asked.phase == "prefill":
        numbers = q + layer.kv_heads * (layer.d_k + layer.d_v) * one.kv_seq_len
    elif layer.stack == "cross":
        return 0
    else:
        numbers = q + layer.kv_heads * max(layer.d_k, layer.d_v) * one.kv_seq_len
    return one.batch * numbers * one.item_bytes


def cache_bytes(model: Model, *, context: int, batch: int, bits: float, paged: bool = False) -> int:
    """Bytes of keys and values that a context leaves, at so many bits a number.

    `paged`: in an engine with one pool of pages for all layers, where windows save nothing and each
    sequence takes whole pages.
    """
    numbers, tokens = 0, -(-context // PAGE_TOKENS) * PAGE_TOKENS if paged else context
    for layer, count in model.attention():
        if layer.stores_cache:
            kept = replace(layer, reach="full") if paged else layer
            numbers += count * kept.kv_numbers(tokens)
    return int(batch * numbers * bits / 8)
