"""The fields of a configuration by their usual names, and what it says beside its layers."""

from collections.abc import Mapping
from typing import Any

from ..files.errors import shown
from ..files.printable import visible

Fields = Mapping[str, Any]
MOST = 1 << 40  # of any size in a configuration
# Usual name: others, of which the first that is given counts.
ALIASES = {
    "hidden_size": ("n_embd", "d_model", "model_dim", "dim"),
    "num_hidden_layers": (
        "n_layer", "n_layers", "num_layers", "encoder_layers", "num_transformer_layers",
    ),
    "num_attention_heads": (
        "n_head", "n_heads", "encoder_attention_heads", "num_query_heads", "attention_heads",
        "num_heads",
    ),
    "num_key_value_heads": ("num_kv_heads", "n_head_kv", "kv_n_heads", "num_attention_groups"),
    "head_dim": ("attention_head_dim", "kv_channels", "d_kv"),
    "max_position_embeddings": (
        "n_positions", "max_seq_len", "max_target_positions", "model_max_length", "seq_length",
        "max_sequence_length", "max_context_length", "n_ctx",
    ),
    "sliding_window": ("attention_window_size", "sliding_window_size", "window_size"),
    "attn_logit_softcapping": ("attn_logit_softcap",),
    "layer_types": ("layers_block_type", "attention_layers"),
    "block_types": ("_block_types",),
    "sliding_window_pattern": ("_sliding_window_pattern", "layer_switch"),
    "intermediate_size": ("ffn_hidden_size", "ffn_dim"),
    "swa_num_attention_heads": ("num_sliding_attention_heads",),
    "swa_num_key_value_heads": ("swa_num_attention_groups",),
    "global_num_key_value_heads": ("num_global_key_value_heads",),
    "index_head_dim": ("sparse_index_dim", "indexer_head_dim"),
    "index_topk": ("sparse_topk_blocks", "index_topk_blocks", "indexer_budget"),
    "indexer_types": ("index_topk_pattern",),
    "linear_conv_kernel_dim": ("linear_short_conv_kernel_size", "short_conv_kernel_size"),
    "state_size": ("ssm_state_size", "mamba_d_state"),
    "conv_kernel": ("mamba_d_conv", "d_conv"),
    "n_groups": ("mamba_n_groups", "mamba_ngroups"),
    "expand": ("mamba_expand",),
    "mamba_heads": ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads"),
    "mamba_width": ("mamba_head_dim", "mamba_d_head", "mamba_headdim"),
    "dt_rank": ("mamba_dt_rank",),
    "mamba_ssm_dtype": ("mamba_ssm_cache_dtype",),
    "num_experts_per_tok": ("experts_per_token", "moe_topk", "moe_k"),
    "num_local_experts": ("n_routed_experts", "num_experts", "moe_num_experts"),
}  # fmt: skip
DECODERS = ("thinker_config", "llm_config", "language_config", "text_config")
"""Names of the part that describes the decoder of text, beside encoders of other things; one may be
in another.
"""
PARTS = {
    **dict.fromkeys(("attn_config", "sparse_attention_config"), ""),
    "linear_attn_config": "linear_",
    "attention_other_setting": "swa_",
}
"""Parts whose fields are read as if they stood outside, with this before their names."""
TOWERS = ("vision_config", "audio_config", "speech_config", "video_config", "vit_config")
"""Of encoders beside a decoder of text."""


class NotGiven(ValueError):
    """A field that is needed lacks."""


def decoder_of(data: Fields) -> Fields:
    """The part that describes the decoder, with the fields of its parts; else all of it."""
    found = data
    for one in DECODERS:
        if isinstance(inner := found.get(one), Mapping):
            found = inner
    for part, prefix in PARTS.items():
        if isinstance(inside := found.get(part), Mapping):
            found = {**{f"{prefix}{name}": value for name, value in inside.items()}, **found}
    return found


def by_usual_names(given: Fields) -> dict[str, Any]:
    """What is not null, also under the usual name."""
    found = {name: value for name, value in given.items() if value is not None}
    if {"num_heads", "state_size"} <= found.keys():  # Mamba-2's own names
        found["mamba_heads"], found["mamba_width"] = found.pop("num_heads"), found.get("head_dim")
    for usual, others in ALIASES.items():
        name = next((one for one in others if one in found), "")
        if name and found.get(usual) is None:
            found[usual] = found[name]
    return found


def number(fields: Fields, name: str, usual: int | None = None, *, least: int = 1) -> int:
    """A size. Raises ValueError if it is none, NotGiven if it lacks and there is no usual one."""
    value = usual if fields.get(name) is None else fields[name]
    if value is None:
        raise NotGiven(f"{name}: not given; wanted a whole number")
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise ValueError(f"{name}: {shown(value)}; wanted a whole number from {least} to 2^40")
    return value


def of_layer(fields: Fields, name: str, index: int) -> Any:
    """A field that is one for all layers, or a list with one for each. Raises ValueError."""
    value = fields.get(name)
    if not isinstance(value, list):
        return value
    if index >= len(value):
        raise ValueError(f"{name}: {shown(value)}; wanted one for layer {index} too")
    return value[index]


def left_out(data: Fields) -> tuple[str, ...]:
    """Encoders beside the decoder: `vision_config (siglip_vision_model, 27 layers)`."""
    found = []
    inside = data.get("thinker_config")
    for name in TOWERS:
        tower = data.get(name) or (inside.get(name) if isinstance(inside, Mapping) else None)
        if isinstance(tower, Mapping) and tower:
            depth = tower.get("num_hidden_layers", tower.get("depth"))
            about = [tower.get("model_type"), depth and f"{depth} layers"]
            said = ", ".join(visible(str(one)) for one in about if one)
            found.append(f"{name} ({said})" if said else name)
    return tuple(found)


def dtype_of(data: Fields, decoder: Fields) -> str | None:
    """That of the weights, as torch names it, from where it is written. Raises ValueError."""
    every = (one.get(key) for one in (decoder, data) for key in ("dtype", "torch_dtype"))
    found = next(filter(None, every), None)
    if found is not None and (not isinstance(found, str) or not found.isprintable()):
        raise ValueError(f"dtype: {shown(found)}; wanted a name such as bfloat16")
    return None if found is None else found.removeprefix("torch.")


def kv_dtype_of(data: Fields) -> tuple[str, list[str]]:
    """That of keys and values where a quantization names it, and a caution if it is not known.

    Raises ValueError.
    """
    quantization = data.get("quantization_config") or {}
    if not isinstance(quantization, Mapping):
        raise ValueError(f"quantization_config: {shown(quantization)}; wanted an object")
    scheme = quantization.get("kv_cache_scheme") or quantization.get("kv_cache_quant_algo")
    if (scheme.get("num_bits") if isinstance(scheme, Mapping) else scheme) in (8, "FP8", "fp8"):
        return "fp8", []
    unknown = f"kv_cache_scheme {shown(scheme)} is not known: keys and values count in full"
    return "", [unknown] if scheme else []
