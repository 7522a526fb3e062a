"""Layers from a configuration alone, for the model types below; needs no other package.

Follows the configuration and modeling files of transformers 5.23 for what a field means and what
it is if it is not given. It refuses model types that it does not know, and fields that may change
attention and are not read, by name.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..files.errors import BadInput, shown
from .decoder import Decoder, Found, head_width
from .fields import Fields
from .layers import AttentionLayer, Layer, Model, OtherLayer, counted

LATENT = OtherLayer(what="multi-head latent attention")
SINKS = "attention sinks"
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
