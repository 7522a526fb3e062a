"""The layers of a decoder whose configuration has the usual names of fields."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..files.errors import shown
from .fields import Fields
from .layers import AttentionLayer, Layer, OtherLayer, Reach

LINEAR = OtherLayer(what="linear attention")
REACHES: dict[str, Reach] = {
    "full_attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a family's reader found."""

    d_model: int
    layers: list[Layer]
    max_context: int | None


def head_width(fields: Fields, name: str, d_model: int, heads: int, default: int | None) -> int:
    """The given width of a head, else `default`, else d_model / heads, which must be whole."""
    if fields.data.get(name) is None and default is None and d_model % heads:
        raise fields.bad(
            "num_attention_heads", f"{heads} heads for {d_model} columns", "a divisor of the width"
        )
    return fields.size(name, default or d_model // heads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """A decoder whose configuration has the usual names, and the defaults of its own.

    `max_context`, `kv_heads`, `head_dim`, `window`: if the configuration does not give them; None:
    as many as query heads; d_model / heads; no window. `gated`: `use_sliding_window` and
    `max_window_layers` say which layers have the window. `pattern`: one of so many layers is full
    if `layer_types` is not given, and `rest` is what the others are. `shared_layers`: how many of
    the last layers read another's cache; None if the model has no such layers. `not_attention`:
    fields with such names that concern layers which are not measured.
    """

    max_context: int
    kv_heads: int | None = None
    head_dim: int | None = None
    window: int | None = None
    gated: bool = False
    pattern: int = 0
    pattern_field: str = ""
    rest: str = "sliding_attention"
    softcap: float | None = None
    caps_scores: bool = False
    also: tuple[str, ...] = ()
    shared_layers: int | None = None
    global_head_dim: int | None = None
    not_attention: tuple[str, ...] = ()

    def __call__(self, fields: Fields) -> Found:
        d_model, count = fields.size("hidden_size"), fields.size("num_hidden_layers")
        heads = fields.size("num_attention_heads")
        base = AttentionLayer(
            stack="decoder",
            heads=heads,
            kv_heads=fields.size("num_key_value_heads", self.kv_heads or heads),
            d_k=(width := head_width(fields, "head_dim", d_model, heads, self.head_dim)),
            d_v=width,
            causal=True,
            also=(*self.also, *self._softcap(fields)),
        )
        window, kinds = self._kinds(fields, count)
        if self.global_head_dim is not None:
            kinds[-1] = "full_attention"  # Gemma 4 makes it so whatever is given
        for name in self.not_attention:
            fields.get(name)
        layers = [self._layer(fields, base, kind, window) for kind in kinds]
        layers = list(self._with_own(fields, layers))
        layers = self._sharing(fields, layers, kinds)
        for layer in layers:
            if isinstance(layer, AttentionLayer) and layer.heads % layer.kv_heads:
                raise fields.bad(
                    "num_key_value_heads",
                    f"{layer.kv_heads} for {layer.heads} heads",
                    "a divisor of num_attention_heads",
                )
        longest = fields.size("max_position_embeddings", self.max_context)
        return Found(d_model=d_model, layers=layers, max_context=longest)

    def _softcap(self, fields: Fields) -> tuple[str, ...]:
        if not self.caps_scores:
            return ()
        cap = fields.number("attn_logit_softcapping", self.softcap)
        return () if cap is None else (f"scores capped by tanh at {cap:g}",)

    def _kinds(self, fields: Fields, count: int) -> tuple[int | None, list[str]]:
        """The window, and what each layer is."""
        window = None
        if self.window is not None:
            window = fields.window("sliding_window", self.window)
        first = 0
        if self.gated:
            window = window if fields.is_set("use_sliding_window") else None
            first = fields.count("max_window_layers", 28)
        every = self.pattern
        if self.pattern_field:
            every = fields.size(self.pattern_field, self.pattern)
        given = fields.words("layer_types", count)
        if given is not None:
            return window, given
        if every:
            return window, [
                self.rest if (index + 1) % every else "full_attention" for index in range(count)
            ]
        kinds = [
            "sliding_attention" if window is not None and index >= first else "full_attention"
            for index in range(count)
        ]
        return window, kinds

    def _layer(self, fields: Fields, base: AttentionLayer, kind: str, window: int | None) -> Layer:
        if kind == "linear_attention":
            return LINEAR
        reach = REACHES.get(kind)
        if reach is None:
            raise fields.bad(
                "layer_types", shown(kind), f"{', '.join(REACHES)} or linear_attention"
            )
        if reach == "full":
            return base
        name = "sliding_window" if reach == "sliding" else "attention_chunk_size"
        if reach == "chunked":
            window = fields.window(name, None)
        if window is None:
            raise fields.bad(name, "not given", f"a length, since layer_types has {kind}")
        return replace(base, reach=reach, window=window)

    def _with_own(self, fields: Fields, layers: list[Layer]) -> Iterator[Layer]:
        """Layers with what the configuration sets for single ones."""
        own = {} if self.global_head_dim is None else self._global(fields, layers)
        overrides = fields.get("per_layer_config")
        if overrides is not None:
            if not isinstance(overrides, dict):
                raise fields.bad("per_layer_config", shown(overrides), "an object")
            own = {}
            for index, values in overrides.items():
                if not str(index).isdecimal() or int(index) >= len(layers):
                    raise fields.bad("per_layer_config", shown(index), "the index of a layer")
                if not isinstance(values, dict):
                    raise fields.bad("per_layer_config", shown(values), "an object for each layer")
                own[int(index)] = Fields(values, f"{fields.place}: per_layer_config: {index}")
        for index, layer in enumerate(layers):
            yield _changed(layer, own[index]) if index in own else layer

    def _global(self, fields: Fields, layers: list[Layer]) -> dict[int, Fields]:
        """Full layers of Gemma 4 have wider heads, and may have fewer of keys and values."""
        values: dict[str, Any] = {"head_dim": fields.size("global_head_dim", self.global_head_dim)}
        fewer = fields.get("num_global_key_value_heads")
        if fields.is_set("attention_k_eq_v") and fewer is not None:
            values["num_key_value_heads"] = fewer
        return {
            index: Fields(values, fields.place)
            for index, layer in enumerate(layers)
            if isinstance(layer, AttentionLayer) and layer.reach == "full"
        }

    def _sharing(self, fields: Fields, layers: list[Layer], kinds: list[str]) -> list[Layer]:
        """The last layers read the cache of the last layer of their kind before them."""
        if self.shared_layers is None:
            return layers
        shared = fields.count("num_kv_shared_layers", self.shared_layers)
        first = len(layers) - shared
        if shared and (first < 1 or set(kinds[:first]) != set(kinds)):
            raise fields.bad(
                "num_kv_shared_layers",
                f"{shared} of {len(layers)} layers",
                "few enough that a layer of every kind keeps its own keys and values",
            )
        return [
            replace(layer, stores_cache=False)
            if index >= first and isinstance(layer, AttentionLayer)
            else layer
            for index, layer in enumerate(layers)
        ]


def _changed(layer: Layer, own: Fields) -> Layer:
    """A layer with its own values in place of the model's."""
    if not isinstance(layer, AttentionLayer):
        return layer
    width = own.size("head_dim", layer.d_k)
    window = own.size("sliding_window", layer.window or -1)
    changed = replace(
        layer,
        heads=own.size("num_attention_heads", layer.heads),
        kv_heads=own.size("num_key_value_heads", layer.kv_heads),
        d_k=width,
        d_v=width,
        window=window if layer.reach == "sliding" else layer.window,
    )
    own.refuse_unknown()
    return changed
