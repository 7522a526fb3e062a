"""Layers as transformers itself resolves them from a configuration; runs in a process of its own.

Its configurations import torch, which takes seconds, so `resolve.py` keeps what was found. Nothing
of the model's own code is run: what `auto_map` names is never looked at.
"""

import json
import re
import sys
from typing import Any

from ..files.errors import BadInput, shown
from . import config_file, parameters, plain
from .layers import AttentionLayer, Counted, Layer, Model, OtherLayer, Weights, counted

ALIBI = "a bias by distance (ALiBi)"
OF_TYPES = {"gpt_oss", "bloom", "mpt"}
"""Those whose scores have sinks, or ALiBi, by their model type alone; no field says it."""
SAME = {"kimi_k2": "deepseek_v3"}
"""Types of transformers by other names (its configuration of kimi_k25 says so of this one)."""
EXPERTS = (
    ("num_experts_per_tok", "experts_per_token", "moe_topk"),
    ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts"),
)
"""Names of how many experts a token is sent to, and of how many there are."""
OF_TOWERS = re.compile("vision|visual|audio|speech")
LATENT_FIELDS = ("kv_lora_rank", "qk_nope_head_dim")
SOFTCAPS = ("attn_logit_softcapping", "attn_logit_softcap")
WINDOWS = {"full": "", "sliding": "sliding_window", "chunked": "attention_chunk_size"}
# What is read here, or by transformers when it makes layers of a configuration.
READ = {
    *("num_attention_heads", "num_key_value_heads", "head_dim", "layer_types", "alibi"),
    *("sliding_window", "use_sliding_window", "max_window_layers", "sliding_window_pattern"),
    *("attention_chunk_size", "no_rope_layers", "per_layer_config", "num_kv_shared_layers"),
    *("multi_query", "num_kv_heads", "new_decoder_architecture", "parallel_attn"),
    *("attention_k_eq_v", "global_head_dim", "num_global_key_value_heads"),
    *("linear_key_head_dim", "linear_value_head_dim", "linear_num_key_heads"),
    *("linear_num_value_heads", "qk_rope_head_dim", "v_head_dim", "qk_head_dim", "q_lora_rank"),
    *LATENT_FIELDS,
    *SOFTCAPS,
}


def model(data: dict[str, Any], name: str, place: str) -> Model:
    """The model of a configuration. Raises BadInput; ImportError without transformers."""
    from transformers import __version__
    from transformers.cache_utils import get_layer_types_and_kwargs
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = data.get("model_type")
    if kind in plain.OTHERS:
        return plain.model(data, name, place)
    kind = SAME.get(str(kind), kind)
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        raise BadInput(
            f"{place}: model_type: {shown(kind)}; wanted one that transformers {__version__} knows;"
            f" a newer version may know it{config_file.own_code(data)}"
        )
    if many := config_file.too_many(data):
        raise BadInput(f"{place}: {many}; wanted at most {config_file.MOST_COUNT}")
    try:
        config = CONFIG_MAPPING[kind].from_dict({**data, "model_type": kind})
        text = config.get_text_config(decoder=True)
    except Exception as error:  # noqa: BLE001 - whatever a configuration's own checks raise
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise BadInput(
            f"{place}: {kind}: transformers {__version__} refuses it: {shown(reason[-1])}"
        ) from None
    decodes = "past_key_values" in getattr(text, "keys_to_ignore_at_inference", ())
    known = (*plain.DECODERS, *OF_TYPES)
    if config.is_encoder_decoder or not (decodes or text.model_type in known):
        raise BadInput(
            f"{place}: model_type: {kind}; wanted a decoder that keeps keys and values, or one of"
            f" {', '.join(sorted(plain.OTHERS))}"
        )
    named = {*READ, *(text.attribute_map[name] for name in READ & text.attribute_map.keys())}
    if unknown := plain.unknown_names(text.to_dict(), named):
        raise BadInput(
            f"{place}: {kind}: {unknown}: may change attention; wanted fields that attnbench knows"
        )
    kinds, _ = get_layer_types_and_kwargs(text)  # of one that reads another's cache: dummy
    given = getattr(text, "layer_types", None) or kinds
    shared = getattr(text, "kv_sharing_modes", None) or [None] * len(kinds)
    try:
        d_model = _number(text, "hidden_size")
        layers = [
            _layer(one, named if mode == "reuse" else found, kind, reuses=mode == "reuse")
            for one, found, named, mode in zip(
                text.per_layer_config, kinds, given, shared, strict=True
            )
        ]
        distinct = counted((one, 1) for one in layers)
        weights, uncounted = _weights(kind, config, text, distinct, data)
    except ValueError as error:
        raise BadInput(
            f"{place}: {kind}: {error}; attnbench cannot tell this model's attention"
        ) from None
    dtype = text.dtype or config.dtype
    return Model(
        name=name,
        model_type=kind,
        d_model=d_model,
        layers=distinct,
        max_context=getattr(text, "max_position_embeddings", None),
        dtype=None if dtype is None else str(dtype).removeprefix("torch."),
        weights=weights,
        uncounted=uncounted,
        left_out=plain.left_out(data),
    )


def _weights(
    kind: str, config: Any, text: Any, layers: Counted, data: dict[str, Any]
) -> tuple[Weights | None, str]:
    """By our formulas, else by transformers' own classes. Raises ValueError."""
    fields = text.to_dict()
    fields |= {usual: fields.get(own) for usual, own in text.attribute_map.items()}
    known = kind in parameters.DECODERS and not fields.get("per_layer_config")
    if known or kind in parameters.OTHERS:
        return parameters.weights_or_why(kind, fields, layers, config.to_dict())
    try:
        tally = built(config)
        words = "counted by transformers in the model without memory"
        return parameters.stored(tally, data.get("quantization_config"), words), ""
    except parameters.NotCounted as why:
        return None, str(why)
    except Exception as error:  # noqa: BLE001 - whatever making a model raises
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        return None, f"transformers cannot make this model without memory: {shown(reason)}"


def built(config: Any) -> parameters.Tally:
    """Of transformers' own model of the configuration, with tensors that have no memory."""
    import torch
    from transformers import AutoModel, AutoModelForCausalLM, AutoModelForImageTextToText
    from transformers.models.auto import modeling_auto

    maker = AutoModel
    if type(config) in modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        maker = AutoModelForImageTextToText
    elif type(config) in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING:
        maker = AutoModelForCausalLM
    config.quantization_config = None
    with torch.device("meta"):
        made = maker.from_config(config)
    ends = [made.get_input_embeddings(), made.get_output_embeddings()]
    outside = {id(weight) for one in ends if one is not None for weight in one.parameters()}
    tally, text = parameters.Tally(), config.get_text_config(decoder=True)
    for name, weight in made.named_parameters():  # each once, also if it is tied
        if weight.ndim < 2 or id(weight) in outside:
            tally.rest += weight.numel()
        elif ".experts." in name:
            tally.experts += weight.numel()
        else:
            tally.matrices += weight.numel()
            tally.beside += weight.numel() if OF_TOWERS.search(name) else 0
    passed, there = (
        next((n for one in names if (n := getattr(text, one, None))), 0) for names in EXPERTS
    )
    tally.share = passed / there if there else 0.0
    return tally


def _number(config: Any, name: str) -> int:
    value = getattr(config, name, None)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}: {shown(value)}; wanted a whole number from 1 on")
    return value


def _kv_heads(config: Any, of: str, heads: int) -> int:
    """Raises ValueError."""
    if of == "falcon":  # has its own names for them
        if config.new_decoder_architecture:
            return _number(config, "num_kv_heads")
        return 1 if config.multi_query else heads
    given = getattr(config, "num_key_value_heads", None) is not None
    return _number(config, "num_key_value_heads") if given else heads


def _layer(config: Any, kind: str, of: str, *, reuses: bool) -> Layer:
    """A layer of its own configuration, in a model of type `of`. Raises ValueError."""
    if kind == "dummy":
        return OtherLayer(what="no attention")
    if kind not in plain.REACHES:
        return OtherLayer(what=kind.replace("_attention", " attention").replace("_", " "))
    heads = _number(config, "num_attention_heads")
    if all(getattr(config, name, None) is not None for name in LATENT_FIELDS):
        return _latent(config, heads)
    if getattr(config, "head_dim", None) is None:
        width = _number(config, "hidden_size") // heads
    else:
        width = _number(config, "head_dim")
    kv_heads = _kv_heads(config, of, heads)
    reach = plain.REACHES[kind]
    window = WINDOWS[reach]
    sinks = of == "gpt_oss"
    biased = getattr(config, "alibi", False) or (of in OF_TYPES and not sinks)
    caps = (getattr(config, name, None) for name in SOFTCAPS)
    return AttentionLayer(
        stack="decoder",
        heads=heads,
        kv_heads=kv_heads,
        d_k=width,
        d_v=width,
        causal=getattr(config, "is_causal", True) is not False,
        reach=reach,
        window=_number(config, window) if window else 0,
        stores_cache=not reuses,
        softcap=float(next(filter(None, caps), 0.0)),
        sinks=sinks,
        also=(ALIBI,) if biased else (),
    )


def _latent(config: Any, heads: int) -> AttentionLayer:
    """All heads attend with keys and values of their own, made of one latent and one rotated key
    for all heads, which are what the cache keeps (DeepseekV3Attention). Raises ValueError.
    """
    rotated = _number(config, "qk_rope_head_dim")
    return AttentionLayer(
        stack="decoder",
        heads=heads,
        kv_heads=heads,
        d_k=_number(config, "qk_nope_head_dim") + rotated,
        d_v=_number(config, "v_head_dim"),
        causal=True,
        latent=_number(config, "kv_lora_rank") + rotated,
        rotated=rotated,
    )


def main() -> None:
    """Reads {"data", "name", "place"} and writes a model or its problems, as JSON."""
    asked = json.load(sys.stdin)
    try:
        text = model(asked["data"], asked["name"], asked["place"]).as_json()
    except BadInput as error:
        text = json.dumps({"problems": list(error.problems)})
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
