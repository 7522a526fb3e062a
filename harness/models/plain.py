"""Layers from a configuration alone, for the model types below; needs no other package.

Follows the configuration and modeling files of transformers 5.23 for what a field means and what
it is if it is not given. It refuses model types that it does not know, and fields that may change
attention and are not read, by name.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import BadInput, shown
from .fields import Fields
from .layers import AttentionLayer, Layer, Model, OtherLayer, Reach, counted

LATENT = OtherLayer(what="multi-head latent attention")
LINEAR = OtherLayer(what="linear attention")
SINKS = "attention sinks"
REACHES: dict[str, Reach] = {
    "full_attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
}
READ_BY = "attnbench"


def model(data: Mapping[str, Any], name: str, place: str) -> Model:
    """The model of a configuration. Raises BadInput."""
    outer = Fields(data, place)
    kind = outer.get("model_type")
    if not isinstance(kind, str):
        found = "not given" if kind is None else shown(kind)
        raise outer.bad("model_type", found, "the name of a model of transformers")
    fields = outer.inner("text_config") if kind in WITH_TEXT else outer
    family = {**FAMILIES, **DECODERS}.get(WITH_TEXT.get(kind, kind))
    if family is None:
        known = ", ".join(sorted((*FAMILIES, *DECODERS, *WITH_TEXT)))
        raise BadInput(
            f"{place}: model_type: {shown(kind)}; wanted one of {known}; for others install"
            " transformers: pip install 'attnbench[hf]'"
        )
    made = family(fields)
    fields.refuse_unknown()
    return Model(
        name=name,
        model_type=kind,
        d_model=made.d_model,
        layers=counted(made.layers),
        max_context=made.max_context,
        dtype=fields.dtype() or outer.dtype(),
        read_by=READ_BY,
    )


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


def latent(fields: Fields) -> Found:
    """DeepSeek V2 and V3: keys and values of all heads come from one short vector.

    head_dim there is the part with positions alone, so it is not the width of a head.
    """
    for name in ("head_dim", "num_attention_heads", "num_key_value_heads", "q_lora_rank"):
        fields.get(name)
    for name in ("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "qk_head_dim"):
        fields.get(name)
    fields.size("kv_lora_rank", 512)
    return Found(
        d_model=fields.size("hidden_size"),
        layers=[LATENT] * fields.size("num_hidden_layers"),
        max_context=fields.size("max_position_embeddings", 4096),
    )


def gpt2(fields: Fields) -> Found:
    if fields.is_set("add_cross_attention"):
        raise fields.bad("add_cross_attention", "true", "a decoder without an encoder")
    d_model, heads = fields.size("n_embd"), fields.size("n_head")
    width = head_width(fields, "", d_model, heads, None)
    layer = AttentionLayer(
        stack="decoder", heads=heads, kv_heads=heads, d_k=width, d_v=width, causal=True
    )
    return Found(
        d_model=d_model,
        layers=[layer] * fields.size("n_layer"),
        max_context=fields.size("n_positions", 1024),
    )


def encoder(fields: Fields, *, seq_len: int = 0) -> list[Layer]:
    """Layers in which every token sees every other; nothing is kept between calls."""
    d_model, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    width = head_width(fields, "", d_model, heads, None)
    layer = AttentionLayer(
        stack="encoder",
        heads=heads,
        kv_heads=heads,
        d_k=width,
        d_v=width,
        causal=False,
        seq_len=seq_len,
        stores_cache=False,
    )
    return [layer] * fields.size("num_hidden_layers")


def bert(fields: Fields) -> Found:
    for name in ("is_decoder", "add_cross_attention"):
        if fields.is_set(name):
            raise fields.bad(name, "true", "an encoder, as BERT is")
    return Found(
        d_model=fields.size("hidden_size"),
        layers=encoder(fields),
        max_context=fields.size("max_position_embeddings", 512),
    )


def vit(fields: Fields) -> Found:
    """A class token and one token for each patch of the image."""
    image, patch = _sides(fields, "image_size", 224), _sides(fields, "patch_size", 16)
    tokens = 1 + (image[0] // patch[0]) * (image[1] // patch[1])
    return Found(
        d_model=fields.size("hidden_size"),
        layers=encoder(fields, seq_len=tokens),
        max_context=tokens,
    )


def _sides(fields: Fields, name: str, default: int) -> tuple[int, int]:
    value = fields.get(name)
    if isinstance(value, list):
        if len(value) != 2 or not all(type(side) is int and side > 0 for side in value):
            raise fields.bad(name, shown(value), "one whole number, or two")
        return value[0], value[1]
    side = fields.size(name, default)
    return side, side


def whisper(fields: Fields) -> Found:
    """An encoder of fixed length, and a decoder that also attends to the encoder's outputs."""
    d_model = fields.size("d_model")
    heard = fields.size("max_source_positions", 1500)
    layers: list[Layer] = []
    for stack in ("encoder", "decoder"):
        heads = fields.size(f"{stack}_attention_heads")
        width = head_width(fields, "", d_model, heads, None)
        encodes = stack == "encoder"
        own = AttentionLayer(
            stack="encoder" if encodes else "decoder",
            heads=heads,
            kv_heads=heads,
            d_k=width,
            d_v=width,
            causal=not encodes,
            seq_len=heard if encodes else 0,
            stores_cache=not encodes,
        )
        count = fields.size(f"{stack}_layers")
        layers += [own] * count
        if not encodes:
            layers += [replace(own, stack="cross", causal=False, kv_seq_len=heard)] * count
    return Found(
        d_model=d_model, layers=layers, max_context=fields.size("max_target_positions", 448)
    )


DECODERS: dict[str, Callable[[Fields], Found]] = {
    "llama": Decoder(max_context=2048),
    "mistral": Decoder(kv_heads=8, window=4096, max_context=131072),
    "qwen2": Decoder(kv_heads=32, window=4096, gated=True, max_context=32768),
    "qwen3": Decoder(kv_heads=32, head_dim=128, window=4096, gated=True, max_context=32768),
    "gemma2": Decoder(
        kv_heads=4,
        head_dim=256,
        window=4096,
        pattern=2,
        softcap=50.0,
        caps_scores=True,
        max_context=8192,
    ),
    "gemma3_text": Decoder(
        kv_heads=4,
        head_dim=256,
        window=4096,
        pattern=6,
        pattern_field="sliding_window_pattern",
        caps_scores=True,
        max_context=131072,
    ),
    "gemma3n_text": Decoder(
        kv_heads=2, head_dim=256, window=512, pattern=5, shared_layers=15, max_context=32768
    ),
    "gemma4_text": Decoder(
        kv_heads=4,
        head_dim=256,
        window=512,
        pattern=6,
        shared_layers=0,
        global_head_dim=512,
        max_context=131072,
    ),
    "gpt_oss": Decoder(
        kv_heads=8, head_dim=64, window=128, pattern=2, also=(SINKS,), max_context=131072
    ),
    "qwen3_next": Decoder(
        kv_heads=2,
        head_dim=256,
        pattern=4,
        pattern_field="full_attention_interval",
        rest="linear_attention",
        max_context=32768,
        not_attention=(
            "linear_key_head_dim",
            "linear_value_head_dim",
            "linear_num_key_heads",
            "linear_num_value_heads",
        ),
    ),
}
FAMILIES: dict[str, Callable[[Fields], Found]] = {
    "gpt2": gpt2,
    "bert": bert,
    "vit": vit,
    "whisper": whisper,
    "deepseek_v2": latent,
    "deepseek_v3": latent,
}
# those whose decoder is described by text_config
WITH_TEXT = {"gemma3": "gemma3_text", "gemma3n": "gemma3n_text", "gemma4": "gemma4_text"}
