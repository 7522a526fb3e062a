"""Layers as transformers itself resolves them from a configuration; runs in a process of its own.

Its configurations import torch, which takes seconds, so `resolve.py` keeps what was found. Nothing
of the model's own code is run: `auto_map` is refused before.
"""

import json
import sys
from typing import Any

from ..files.errors import BadInput, shown
from . import plain
from .layers import AttentionLayer, Layer, Model, OtherLayer, counted

SINKS, ALIBI = "attention sinks", "a bias by distance (ALiBi)"
OF_TYPES = {"gpt_oss": SINKS, "bloom": ALIBI, "mpt": ALIBI}
"""What scores have by their model type alone; no field says it."""
LATENT_FIELDS = ("kv_lora_rank", "qk_nope_head_dim")
SOFTCAPS = ("attn_logit_softcapping", "attn_logit_softcap")
WINDOWS = {"full": "", "sliding": "sliding_window", "chunked": "attention_chunk_size"}
# What is read here, or by transformers when it makes layers of a configuration.
READ = {
    *("num_attention_heads", "num_key_value_heads", "head_dim", "layer_types", "alibi"),
    *("sliding_window", "use_sliding_window", "max_window_layers", "sliding_window_pattern"),
    *("attention_chunk_size", "no_rope_layers", "per_layer_config", "num_kv_shared_layers"),
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
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        raise BadInput(
            f"{place}: model_type: {shown(kind)}; wanted one that transformers {__version__} knows;"
            " a newer version may know it"
        )
    try:
        config = CONFIG_MAPPING[kind].from_dict(data)
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
    except ValueError as error:
        raise BadInput(
            f"{place}: {kind}: {error}; attnbench cannot tell this model's attention"
        ) from None
    dtype = text.dtype or config.dtype
    return Model(
        name=name,
        model_type=kind,
        d_model=d_model,
        layers=counted(layers),
        max_context=getattr(text, "max_position_embeddings", None),
        dtype=None if dtype is None else str(dtype).removeprefix("torch."),
        read_by=f"transformers {__version__}",
    )


def _number(config: Any, name: str) -> int:
    value = getattr(config, name, None)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}: {shown(value)}; wanted a whole number from 1 on")
    return value


def _layer(config: Any, kind: str, of: str, *, reuses: bool) -> Layer:
    """A layer of its own configuration, in a model of type `of`. Raises ValueError."""
    if kind == "dummy":
        return OtherLayer(what="no attention")
    if kind not in plain.REACHES:
        return OtherLayer(what=kind.replace("_attention", " attention").replace("_", " "))
    if any(getattr(config, name, None) is not None for name in LATENT_FIELDS):
        return OtherLayer(what="multi-head latent attention")
    heads = _number(config, "num_attention_heads")
    if getattr(config, "head_dim", None) is None:
        width = _number(config, "hidden_size") // heads
    else:
        width = _number(config, "head_dim")
    has_kv = getattr(config, "num_key_value_heads", None) is not None
    reach = plain.REACHES[kind]
    window = WINDOWS[reach]
    also = [OF_TYPES[of]] if of in OF_TYPES else [ALIBI] if getattr(config, "alibi", False) else []
    caps = (getattr(config, name, None) for name in SOFTCAPS)
    return AttentionLayer(
        stack="decoder",
        heads=heads,
        kv_heads=_number(config, "num_key_value_heads") if has_kv else heads,
        d_k=width,
        d_v=width,
        causal=getattr(config, "is_causal", True) is not False,
        reach=reach,
        window=_number(config, window) if window else 0,
        stores_cache=not reuses,
        also=(*also, *(f"scores capped by tanh at {cap:g}" for cap in caps if cap)),
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
