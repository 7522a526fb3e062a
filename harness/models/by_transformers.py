"""Layers as transformers itself resolves them from a configuration; runs in a process of its own.

Its configurations import torch, which takes seconds, so `resolve.py` keeps what was found. Nothing
of the model's own code is run: `auto_map` is refused before.
"""

import json
import sys
from typing import Any

from ..files.errors import BadInput, shown
from .decoder import LINEAR, REACHES
from .fields import unknown_names
from .layers import AttentionLayer, Layer, Model, OtherLayer, Reach, counted
from .plain import DECODERS, FAMILIES, LATENT, SINKS
from .plain import model as plain_model

SINK_TYPES = {"gpt_oss"}  # whose scores have a learned extra column, which no field says
BIASED_TYPES = {"bloom", "mpt"}
LATENT_FIELDS = ("kv_lora_rank", "qk_nope_head_dim")
SOFTCAPS = ("attn_logit_softcapping", "attn_logit_softcap")
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
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = data.get("model_type")
    if kind in FAMILIES:  # their layers are all alike, which transformers has no words for
        return plain_model(data, name, place)
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
    if config.is_encoder_decoder or not (decodes or text.model_type in DECODERS):
        raise BadInput(
            f"{place}: model_type: {kind}; wanted a decoder that keeps keys and values, or one of"
            f" {', '.join(sorted(FAMILIES))}"
        )
    named = {*READ, *(text.attribute_map[name] for name in READ & text.attribute_map.keys())}
    if unknown := unknown_names(text.to_dict(), named):
        raise BadInput(
            f"{place}: {kind}: {unknown}: may change attention; wanted fields that attnbench knows"
        )
    own = Resolved(text, kind, place)
    dtype = text.dtype or config.dtype
    return Model(
        name=name,
        model_type=kind,
        d_model=own.number(text, "hidden_size"),
        layers=counted(own.layers()),
        max_context=getattr(text, "max_position_embeddings", None),
        dtype=None if dtype is None else str(dtype).removeprefix("torch."),
        read_by=f"transformers {__version__}",
    )


class Resolved:
    """The layers of a decoder's configuration object."""

    def __init__(self, config: Any, kind: str, place: str) -> None:
        self.config, self.kind, self.place = config, kind, place

    def number(self, config: Any, name: str) -> int:
        """Raises BadInput."""
        value = getattr(config, name, None)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BadInput(
                f"{self.place}: {self.kind}: {name}: {shown(value)}; wanted a whole number from 1"
                " on; attnbench cannot tell this model's attention"
            )
        return value

    def layers(self) -> list[Layer]:
        from transformers.cache_utils import get_layer_types_and_kwargs

        kinds, _ = get_layer_types_and_kwargs(self.config)
        given = getattr(self.config, "layer_types", None) or kinds
        shared = getattr(self.config, "kv_sharing_modes", None) or [None] * len(kinds)
        return [
            self.layer(config, named if mode == "reuse" else kind, reuses=mode == "reuse")
            for config, kind, named, mode in zip(
                self.config.per_layer_config, kinds, given, shared, strict=True
            )
        ]

    def layer(self, config: Any, kind: str, *, reuses: bool) -> Layer:
        if kind == "dummy":
            return OtherLayer(what="no attention")
        if kind == "linear_attention":
            return LINEAR
        if kind not in REACHES:
            return OtherLayer(what=kind.replace("_", " "))
        if any(getattr(config, name, None) is not None for name in LATENT_FIELDS):
            return LATENT
        reach: Reach = REACHES[kind]
        window = {"sliding": "sliding_window", "chunked": "attention_chunk_size"}.get(reach)
        heads = self.number(config, "num_attention_heads")
        if getattr(config, "head_dim", None) is None:
            width = self.number(config, "hidden_size") // heads
        else:
            width = self.number(config, "head_dim")
        has_kv = getattr(config, "num_key_value_heads", None) is not None
        return AttentionLayer(
            stack="decoder",
            heads=heads,
            kv_heads=self.number(config, "num_key_value_heads") if has_kv else heads,
            d_k=width,
            d_v=width,
            causal=getattr(config, "is_causal", True) is not False,
            reach=reach,
            window=self.number(config, window) if window else 0,
            stores_cache=not reuses,
            also=self.also(config),
        )

    def also(self, config: Any) -> tuple[str, ...]:
        """What happens to scores beside the scale and the mask."""
        found = []
        if self.kind in SINK_TYPES:
            found.append(SINKS)
        if self.kind in BIASED_TYPES or getattr(config, "alibi", False):
            found.append("a bias by distance (ALiBi)")
        for name in SOFTCAPS:
            if cap := getattr(config, name, None):
                found.append(f"scores capped by tanh at {cap:g}")
        return tuple(found)


def main() -> None:
    """Reads {"data", "name", "place"} and writes a model or its problems, as JSON."""
    from .kept import as_json

    asked = json.load(sys.stdin)
    try:
        found = as_json(model(asked["data"], asked["name"], asked["place"]))
    except BadInput as error:
        found = {"problems": list(error.problems)}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
