"""What a model's layers compute: the shapes of their attention, and how many layers have each."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import RootModel

from ..files.errors import BadInput

Stack = Literal["decoder", "encoder", "cross"]
"""Cross-attention belongs to the decoder: its keys are the encoder's outputs."""
Reach = Literal["full", "sliding", "chunked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionLayer:
    """Softmax attention of one layer; lengths come with the question, except where one is fixed.

    `window`: a query sees itself and the window - 1 tokens before it ("sliding"), or the tokens of
    its own chunk of that many ("chunked"); 0 if it sees all. `seq_len` and `kv_seq_len`: the only
    length that the model takes there, 0 if any. `stores_cache`: False in a decoder's layer that
    reads the keys and values of an earlier one, and in layers that keep none. `also`: what the
    model does to scores that no backend here does.
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
    also: tuple[str, ...] = ()

    def text(self) -> str:
        """decoder, 32 heads of 128, 8 for keys and values, the last 4,096 tokens."""
        parts = [f"{self.stack}, {self.heads} heads of {self.d_k}"]
        if self.kv_heads != self.heads:
            parts.append(f"{self.kv_heads} for keys and values")
        reaches = {"sliding": "the last", "chunked": "chunks of"}
        if self.reach in reaches:
            parts.append(f"{reaches[self.reach]} {self.window:,} tokens")
        lengths = {"of": self.seq_len, "to": self.kv_seq_len}
        parts += [f"{word} {length:,} tokens" for word, length in lengths.items() if length]
        if self.stack == "decoder" and not self.stores_cache:
            parts.append("with the keys of an earlier layer")
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

    def cached_tokens(self, context: int) -> int:
        """Tokens whose keys and values a layer needs for the next one, of a context of so many.

        With a window only the last window - 1 are needed beside the new token's own.
        """
        if not self.stores_cache:
            return 0
        tokens = self.kv_seq_len or context
        return min(tokens, self.window) if self.reach == "sliding" else tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLayer:
    """A layer that mixes tokens by something that is not measured here; `what` names it."""

    what: str


Layer = AttentionLayer | OtherLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model's layers, each distinct one with how many there are, in the order of the first.

    `max_context`: the longest context that the model itself takes, in tokens. `dtype`: that of its
    weights, as torch names it. `weight_bytes`: of all files beside the configuration. `read_by`:
    what resolved the layers. None: not known.
    """

    name: str
    model_type: str
    d_model: int
    layers: tuple[tuple[Layer, int], ...]
    max_context: int | None
    dtype: str | None
    read_by: str
    weight_bytes: int | None = None

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


def counted(layers: Iterable[Layer]) -> tuple[tuple[Layer, int], ...]:
    """Each distinct layer with how often it occurs, in the order of first occurrence."""
    counts: dict[Layer, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    return tuple(counts.items())
