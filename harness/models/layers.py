"""What a model's layers are, and how many there are of each: softmax attention of a shape,
something that keeps a state, or neither.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import TypeAdapter

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
    the denominator only. `index`: numbers of a key that an indexer keeps for a token beside them
    (DeepSeek-V3.2's sparse attention), 0 without one. `also`: what the model does to scores that no
    backend here does.
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
    index: int = 0
    also: tuple[str, ...] = ()

    def text(self) -> str:
        """decoder, 32 heads of 128, 8 for keys and values, the last 4 096 tokens."""
        reaches = {"full": "", "sliding": "the last", "chunked": "chunks of"}
        reused = self.stack == "decoder" and not self.stores_cache
        parts = (
            f"{self.stack}, {self.heads} heads of {self.d_k}",
            f"values of {self.d_v}" if self.d_v != self.d_k else "",
            f"{self.kv_heads} for keys and values" if self.kv_heads != self.heads else "",
            f"{self.latent} numbers kept for a token" if self.latent else "",
            f"an indexer's key of {self.index}" if self.index else "",
            f"{reaches[self.reach]} {spaced(self.window)} tokens" if reaches[self.reach] else "",
            f"of {spaced(self.seq_len)} tokens" if self.seq_len else "",
            f"to {spaced(self.kv_seq_len)} tokens" if self.kv_seq_len else "",
            "with the keys of an earlier layer" if reused else "",
            f"scores capped at {self.softcap:g}" if self.softcap else "",
            "attention sinks" if self.sinks else "",
        )
        return ", ".join((*filter(None, parts), *self.also))

    def divided(self, parts: int) -> "AttentionLayer":
        """The share of one of `parts` devices of tensor parallelism: whole heads.

        Key and value heads are repeated where there are fewer than devices.
        """
        kv_heads = max(1, self.kv_heads // parts)
        return replace(self, heads=self.heads // parts, kv_heads=kv_heads)

    def kv_numbers(self, context: int) -> int:
        """Keys and values that the layer reads for the next token, of a context of so many, as
        numbers: in Hugging Face's DynamicCache min(context, window) tokens of a layer with a
        window or chunks, up to one token that it has in hand; with the keys of an indexer. Devices
        that share the heads of a latent have all of it each.
        """
        tokens = self.kv_seq_len or context
        tokens = tokens if self.reach == "full" else min(tokens, self.window)
        return ((self.latent or self.kv_heads * (self.d_k + self.d_v)) + self.index) * tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLayer:
    """A layer, or the part of one beside attention, that mixes tokens by something else or by
    nothing; `what` names it. `state`: numbers that it keeps of a sequence however long, in the
    dtype of the model, `state_fp32`: in fp32; None if that is not known.
    """

    what: str
    state: int | None = 0
    state_fp32: int = 0

    def state_bytes(self, item_bytes: int) -> int | None:
        """Of one sequence."""
        return None if self.state is None else self.state * item_bytes + 4 * self.state_fp32

    def divided(self, parts: int) -> "OtherLayer":
        """The share of one of `parts` devices."""
        state = None if self.state is None else self.state // parts
        return replace(self, state=state, state_fp32=self.state_fp32 // parts)


NO_ATTENTION = OtherLayer(what="no attention")
"""A layer that has feed-forward products only."""

Layer = AttentionLayer | OtherLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How many weights a model has; `words`: how they were counted.

    `quantized`: those of them that `method` stores in `bits` each, with their share of scales; ""
    for none. The others have the dtype of the model.
    """

    parameters: int
    words: str
    method: str = ""
    quantized: int = 0
    bits: float = 0.0

    def size_bytes(self, item_bytes: int) -> int:
        """Of all of them; `item_bytes`: of a number that is not quantized."""
        return (self.parameters - self.quantized) * item_bytes + int(self.quantized * self.bits / 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model's layers, each distinct one with how many there are, in the order of the first.

    `max_context`: the longest context that the model itself takes, in tokens. `dtype`: that of its
    weights, as torch names it. `weight_bytes`: of all files beside the configuration; `weights`:
    by its configuration, or `uncounted` says why not. None: not known. `kv_dtype`: that of keys
    and values, where the configuration names another. `left_out`: parts whose attention is not
    among the layers, such as an encoder of images. `cautions`: what was not understood, so that the
    layers may be others. `reader`: what read them, where that leaves something to say.
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
    kv_dtype: str = ""
    left_out: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    reader: str = ""

    def attention(self) -> list[tuple[AttentionLayer, int]]:
        """The layers that compute attention."""
        return [(one, count) for one, count in self.layers if isinstance(one, AttentionLayer)]

    def others(self) -> list[tuple[OtherLayer, int]]:
        """The layers, or parts of them, that compute no attention."""
        return [(one, count) for one, count in self.layers if isinstance(one, OtherLayer)]

    def divided(self, parts: int) -> "Model":
        """One device's share under tensor parallelism. Raises BadInput."""
        for heads, kv in {(one.heads, one.kv_heads) for one, _ in self.attention()}:
            if heads % parts or (kv % parts and parts % kv):
                raise BadInput(
                    f"tp {parts}: {self.name}: {heads} heads cannot be divided by {parts}, or {kv}"
                    " for keys and values be divided or repeated; wanted a number that divides them"
                )
        layers = ((layer.divided(parts), count) for layer, count in self.layers)
        return replace(self, layers=tuple(layers))


JSON = TypeAdapter(Model)


def counted(layers: Iterable[Layer]) -> tuple[tuple[Layer, int], ...]:
    """Each distinct layer with how many there are, in the order of the first."""
    return tuple(Counter(layers).items())
