"""Layers from a configuration alone, for the model types below; needs no other package.

Follows the configuration and modeling files of transformers 5.23 for what a field means and what
it is if it is not given. It refuses model types that it does not know, and fields that may change
attention and are not read, by name.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..files.errors import BadInput, shown
from ..files.printable import visible
from . import config_file, parameters
from .layers import AttentionLayer, Counted, Model, Reach, counted

INSTALL = "install transformers, which knows more: pip install 'attnbench[hf]'"
REACHES: dict[str, Reach] = {
    "full_attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
}
# What may say something about attention: an unknown field of such a name is refused.
ABOUT_ATTENTION = re.compile(
    r"attn|attention|head|window|layer_type|sink|chunk|lora_rank|softcap|(^|_)kv(_|$)|multi_query|alibi|per_layer_conf"
)
HARMLESS = {
    # how it is computed or trained, not what
    *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    *("attention_dropout", "attn_pdrop", "attention_probs_dropout_prob", "attention_bias"),
    *("encoder_layerdrop", "activation_dropout", "output_attentions"),
    # scales and norms before the scores, and the model's outputs
    *("query_pre_attn_scalar", "scale_attn_weights", "scale_attn_by_inverse_layer_idx"),
    *("reorder_and_upcast_attn", "attention_multiplier", "use_qk_norm", "qk_layernorm"),
    *("attn_scale", "attn_temperature_tuning", "_sliding_window_pattern"),
    *("final_logit_softcapping", "lm_head_bias", "prune_heads", "pruned_heads"),
    *("chunk_size_feed_forward", "classifier_proj_size", "lm_head_multiplier"),
    *("attention_in_multiplier", "attention_out_multiplier", "attention_softmax_in_fp32"),
    *("scale_attention_softmax_in_fp32",),
    # what else a layer has, and where
    *("parallel_attn", "num_ln_in_parallel_attn", "mlp_layer_types"),
}
TOWERS = ("vision_config", "audio_config", "speech_config", "video_config")
"""Of encoders beside a decoder of text."""

Size = Annotated[int, Field(ge=1, le=1 << 40)]
Sides = Size | Annotated[list[Size], Field(min_length=2, max_length=2)]


class Config(BaseModel):
    """What is read of a configuration; other fields are kept, to be refused by name."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    hidden_size: Size
    num_hidden_layers: Size
    num_attention_heads: Size
    max_position_embeddings: Size = 512

    @property
    def width(self) -> int:
        """Of a head. Raises ValueError."""
        return divided(self.hidden_size, self.num_attention_heads)

    @property
    def longest(self) -> int:
        """The longest context that it takes, in tokens."""
        return self.max_position_embeddings

    def layers(self) -> Counted:
        """As an encoder's: every token sees every other. Raises ValueError."""
        return self.alike(stack="encoder", causal=False, stores_cache=False)

    def alike(self, **layer: Any) -> Counted:
        """Every layer with as many heads of keys and values as of queries."""
        heads, width = self.num_attention_heads, self.width
        one = AttentionLayer(heads=heads, kv_heads=heads, d_k=width, d_v=width, **layer)
        return ((one, self.num_hidden_layers),)


def divided(columns: int, heads: int) -> int:
    """The width of a head. Raises ValueError."""
    if columns % heads:
        raise ValueError(
            f"num_attention_heads: {heads} heads for {columns} columns; wanted a divisor"
        )
    return columns // heads


class Decoder(Config):
    """The usual names. `use_sliding_window`, `max_window_layers`: which layers have the window. A
    `sliding_window_pattern` of n makes every n-th layer full where no `layer_types` are given.
    """

    num_key_value_heads: Size | None = None
    head_dim: Size | None = None
    sliding_window: Size | None = None
    sliding_window_pattern: Size | None = None
    use_sliding_window: bool = True
    max_window_layers: Annotated[int, Field(ge=0)] = 0
    layer_types: list[str] | None = None

    @property
    def width(self) -> int:
        return self.head_dim or super().width

    def layers(self) -> Counted:
        heads, count = self.num_attention_heads, self.num_hidden_layers
        kv_heads = self.num_key_value_heads or heads
        if heads % kv_heads:
            raise ValueError(f"num_key_value_heads: {kv_heads} for {heads} heads; wanted a divisor")
        width, window = self.width, self.sliding_window if self.use_sliding_window else None
        full = AttentionLayer(
            stack="decoder", heads=heads, kv_heads=kv_heads, d_k=width, d_v=width, causal=True
        )
        local = replace(full, reach="sliding", window=window or 0)
        if self.layer_types is not None:
            made = {"full_attention": full} | ({"sliding_attention": local} if window else {})
            if len(self.layer_types) != count or set(self.layer_types) - made.keys():
                raise ValueError(
                    f"layer_types: {shown(self.layer_types)}; wanted {' or '.join(made)} for each"
                    f" of {count} layers; for others {INSTALL}"
                )
            return counted((made[kind], 1) for kind in self.layer_types)
        if window and (every := self.sliding_window_pattern):
            each = count // every
            ordered = [(local, count - each), (full, each)]
            return counted(ordered)
        first = min(self.max_window_layers, count) if window else count
        return counted([(full, first), (local, count - first)])


class Gemma2(Decoder):
    """Every other layer is full; all cap their scores."""

    attn_logit_softcapping: Annotated[float, Field(gt=0)] | None = 50.0

    def layers(self) -> Counted:
        cap = self.attn_logit_softcapping or 0.0
        made = super().layers()
        return tuple(
            (replace(one, softcap=cap), count)
            for one, count in made
            if isinstance(one, AttentionLayer)
        )


class Gpt2(Decoder):
    hidden_size: Size = Field(alias="n_embd")
    num_hidden_layers: Size = Field(alias="n_layer")
    num_attention_heads: Size = Field(alias="n_head")
    max_position_embeddings: Size = Field(1024, alias="n_positions")
    add_cross_attention: Literal[False] = False


class Bert(Config):
    is_decoder: Literal[False] = False
    add_cross_attention: Literal[False] = False


class Vit(Config):
    """A class token and one token for each patch of the image; that is all that it takes."""

    image_size: Sides = 224
    patch_size: Sides = 16

    def layers(self) -> Counted:
        return self.alike(stack="encoder", causal=False, stores_cache=False, seq_len=self.longest)

    @property
    def longest(self) -> int:
        (high, wide), (down, across) = (
            side if isinstance(side, list) else (side, side)
            for side in (self.image_size, self.patch_size)
        )
        return 1 + (high // down) * (wide // across)


class Whisper(Config):
    """An encoder of fixed length, and a decoder that also attends to the encoder's outputs."""

    hidden_size: Size = Field(alias="d_model")
    num_hidden_layers: Size = Field(alias="encoder_layers")
    num_attention_heads: Size = Field(alias="encoder_attention_heads")
    decoder_layers: Size
    decoder_attention_heads: Size
    max_source_positions: Size = 1500
    max_position_embeddings: Size = Field(448, alias="max_target_positions")

    def layers(self) -> Counted:
        heard = self.max_source_positions
        encoder = self.alike(stack="encoder", causal=False, stores_cache=False, seq_len=heard)
        heads = self.decoder_attention_heads
        width = divided(self.hidden_size, heads)
        own = AttentionLayer(
            stack="decoder", heads=heads, kv_heads=heads, d_k=width, d_v=width, causal=True
        )
        cross = replace(own, stack="cross", causal=False, kv_seq_len=heard)
        return (*encoder, (own, self.decoder_layers), (cross, self.decoder_layers))


QWEN = {
    "num_key_value_heads": 32,
    "max_position_embeddings": 32768,
    "sliding_window": 4096,
    "use_sliding_window": False,
    "max_window_layers": 28,
}
Family = tuple[type[Config], dict[str, Any]]
"""What reads a configuration, and the defaults of its own."""
DECODERS: dict[str, Family] = {
    "gpt2": (Gpt2, {}),
    "llama": (Decoder, {"max_position_embeddings": 2048}),
    "mistral": (
        Decoder,
        {"num_key_value_heads": 8, "sliding_window": 4096, "max_position_embeddings": 131072},
    ),
    "mixtral": (Decoder, {"num_key_value_heads": 8, "max_position_embeddings": 131072}),
    "qwen2": (Decoder, QWEN),
    "qwen3": (Decoder, {**QWEN, "head_dim": 128}),
    "gemma2": (
        Gemma2,
        {
            "num_key_value_heads": 4,
            "head_dim": 256,
            "max_position_embeddings": 8192,
            "sliding_window": 4096,
            "sliding_window_pattern": 2,
        },
    ),
    "gemma3_text": (
        Decoder,
        {
            "num_key_value_heads": 4,
            "head_dim": 256,
            "max_position_embeddings": 131072,
            "sliding_window": 4096,
            "sliding_window_pattern": 6,
        },
    ),
}
OTHERS: dict[str, Family] = {"bert": (Bert, {}), "vit": (Vit, {}), "whisper": (Whisper, {})}
"""Of which transformers has no words for the layers."""
WITH_TEXT = {"gemma3": "gemma3_text"}  # whose decoder is described by text_config
OF_SOME = {"sliding_window", "sliding_window_pattern", "use_sliding_window", "max_window_layers"}
"""Fields that only those read whose defaults have them."""


def model(data: Mapping[str, Any], name: str, place: str) -> Model:
    """The model of a configuration. Raises BadInput."""
    kind = data.get("model_type")
    known_types = {**DECODERS, **OTHERS}
    family, defaults = known_types.get(WITH_TEXT.get(str(kind), str(kind)), (None, {}))
    if family is None or not isinstance(kind, str):
        known = ", ".join(sorted((*known_types, *WITH_TEXT)))
        raise BadInput(
            f"{place}: model_type: {shown(kind)}; wanted one of {known}; or {INSTALL}"
            f"{config_file.own_code(data)}"
        )
    fields = data.get("text_config") if kind in WITH_TEXT else data
    if not isinstance(fields, Mapping):
        raise BadInput(f"{place}: text_config: {shown(fields)}; wanted an object")
    # null stands for what is not given, but where it says that there is none
    none = ("sliding_window", "attn_logit_softcapping")
    given = {key: it for key, it in fields.items() if it is not None or key in none}
    try:
        config = family.model_validate({**defaults, **given})
        layers = config.layers()
        weights, uncounted = parameters.weights_or_why(kind, config.model_dump(), layers, data)
    except ValidationError as error:
        first = error.errors()[0]
        found = "not given" if first["type"] == "missing" else shown(first["input"])
        where = ".".join(map(str, first["loc"]))
        wanted = first["msg"].replace("Input should be", "wanted")
        raise BadInput(f"{place}: {where}: {found}; {wanted}") from None
    except ValueError as error:
        raise BadInput(f"{place}: {error}") from None
    names = {field.alias or own for own, field in family.model_fields.items()}
    read = names - (OF_SOME - defaults.keys())
    if unknown := unknown_names(given, read):
        raise BadInput(
            f"{place}: {unknown}: not known for this model_type, and may change its attention;"
            f" {INSTALL}"
        )
    dtypes = (one.get(key) for one in (fields, data) for key in ("dtype", "torch_dtype"))
    dtype = next(filter(None, dtypes), None)
    if dtype is not None and (not isinstance(dtype, str) or not dtype.isprintable()):
        raise BadInput(f"{place}: dtype: {shown(dtype)}; wanted a name such as bfloat16")
    return Model(
        name=name,
        model_type=kind,
        d_model=config.hidden_size,
        layers=layers,
        max_context=config.longest,
        dtype=None if dtype is None else dtype.removeprefix("torch."),
        weights=weights,
        uncounted=uncounted,
        left_out=left_out(data),
    )


def left_out(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Encoders beside the decoder: `vision_config (siglip_vision_model, 27 layers)`."""
    found = []
    for name in TOWERS:
        if isinstance(tower := data.get(name), Mapping) and tower:
            depths = (tower.get(one) for one in ("num_hidden_layers", "depth"))
            depth = next((one for one in depths if isinstance(one, int)), None)
            about = [tower.get("model_type"), None if depth is None else f"{depth} layers"]
            said = ", ".join(visible(str(one)) for one in about if one is not None)
            found.append(f"{name} ({said})" if said else name)
    return tuple(found)


def unknown_names(data: Mapping[str, Any], read: Collection[str]) -> str:
    """Fields that may change attention and were not read, for a message; "" if there are none.

    A name that begins with that of a field that was read, and has its value, is that field's other
    name, as Gemma 2's `sliding_window_size`.
    """
    unknown = [
        name
        for name, value in data.items()
        if name not in read
        and name not in HARMLESS
        and not (value is None or value is False or value in ([], {}, 0))
        and ABOUT_ATTENTION.search(name)
        and not any(name.startswith(f"{one}_") and data.get(one) == value for one in read)
    ]
    return ", ".join(shown(name) for name in sorted(unknown)[:5])
