"""Layers by the fields of a configuration; needs no other package.

What a field means follows the configuration and modeling files of transformers 5.23. Layers are
read from fields, never guessed from the name of a model; what is not understood is named in a
caution.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..files.errors import BadInput, shown
from . import config_file, fields, parameters
from .fields import Fields, NotGiven, number, of_layer
from .kinds import PREFIXES, SIZES, Kind, kinds, state_layer, unknown_names
from .layers import NO_ATTENTION, AttentionLayer, Layer, Model, OtherLayer, Stack, counted

INSTALL = "install transformers, which knows the defaults: pip install 'attnbench[hf]'"
WITHOUT = f"config.json was read without the defaults of its type; {INSTALL}"
ALIBI = "a bias by distance (ALiBi)"
RELATIVE = "a bias by relative position"
T5 = ("t5", "mt5", "umt5", "longt5", "deberta", "deberta-v2", "mpnet")
BIASED = {"bloom": ALIBI, **dict.fromkeys(T5, RELATIVE)}
"""Types whose scores have a bias that no field names."""
ENCODERS = {
    *("bert", "roberta", "xlm-roberta", "distilbert", "electra", "camembert", "albert", "ernie"),
    *("deberta", "deberta-v2", "mpnet", "modernbert", "nomic_bert", "esm", "eurobert", "rembert"),
    *("vit", "siglip_vision_model", "siglip_text_model", "clip_vision_model", "dinov2", "deit"),
}
TWICE = ("longcat_flash",)
"""Types with two attentions in a layer (LongCat-Flash, arXiv:2509.01322, figure 2)."""
EXTRA_TOKENS = {"vit": 1, "clip_vision_model": 1, "dinov2": 1, "deit": 2, "siglip_vision_model": 0}
"""Of encoders of images: tokens beside those of patches."""
WINDOWS: Mapping[Kind, str] = {"sliding": "sliding_window", "chunked": "attention_chunk_size"}
HYBRID: Mapping[Kind, Kind] = {"hybrid": "full", "hybrid_sliding": "sliding"}
"""Layers with a state beside attention, and of which kind that is."""


def model(data: Mapping[str, Any], name: str, place: str, resolved: Fields | None = None) -> Model:
    """The model of a configuration. `resolved`: the decoder's fields as transformers has them, for
    what is not given. Raises BadInput.
    """
    try:
        return _model(data, name, resolved)
    except ValueError as error:
        lacks = resolved is None and isinstance(error, NotGiven)
        hint = f"; {INSTALL}{config_file.own_code(data)}" if lacks else ""
        raise BadInput(f"{place}: {error}{hint}") from None


def _model(data: Fields, name: str, resolved: Fields | None) -> Model:
    kind, given = str(data.get("model_type")), fields.decoder_of(data)
    of = str(given.get("model_type") or kind)
    family = parameters.FAMILIES.get(of)
    found = _found(given, resolved, family or {}) | {"model_type": of}
    if family and "sliding_window" not in family:  # it has none, whatever is said
        found.pop("sliding_window", None)
    unknown = unknown_names(given, found)
    if found.get("use_sliding_window") is False:
        found.pop("sliding_window", None)
    layers = counted(_layers(found, of))
    kv_dtype, cautions = fields.kv_dtype_of(data)
    cautions += [f"{shown(one)} is not known, and may change attention" for one in unknown]
    windowed = [getattr(one, "reach", "") for one, _ in layers] == ["sliding"]
    if resolved is None and not family and windowed and "layer_types" not in found:
        cautions.append("which layers have the window is not said; it counts in all of them")
    longest = number(found, "max_position_embeddings", 0, least=0)
    fixed = [getattr(one, "seq_len", 0) for one, _ in layers]
    weights, uncounted = None, ""
    try:
        weights = parameters.weights(kind, found, layers, data.get("quantization_config"))
    except NotGiven as why:
        uncounted = str(why)
    return Model(
        name=name,
        model_type=kind,
        d_model=number(found, "hidden_size"),
        layers=layers,
        max_context=(max(fixed) if all(fixed) else longest) or None,
        dtype=fields.dtype_of(data, given),
        weights=weights,
        uncounted=uncounted,
        kv_dtype=kv_dtype,
        left_out=fields.left_out(data),
        cautions=tuple(cautions),
        reader=WITHOUT if resolved is None and kind not in parameters.FAMILIES else "",
    )


def _found(given: Fields, resolved: Fields | None, family: Fields) -> dict[str, Any]:
    """All fields by their usual names: as given, else as transformers or the family has them."""
    defaults = {one: it for one, it in family.items() if one not in given}  # null: there is none
    usual = fields.by_usual_names({**defaults, **(resolved or {})})
    found = {**usual, **fields.by_usual_names(given)}
    if usual.get("layer_types"):  # which says more than a list of older names
        found["layer_types"] = usual["layer_types"]
    if isinstance(blocks := found.get("block_configs"), list):
        found |= _of_blocks(blocks, found)
    return found


def _of_blocks(blocks: list[Any], found: Fields) -> dict[str, Any]:
    """Nemotron-NAS: of each block, whether it has attention, and how many heads share keys."""
    heads, found_kinds, shared = number(found, "num_attention_heads"), [], []
    for index, block in enumerate(blocks):
        said = block.get("attention") if isinstance(block, dict) else None
        if not isinstance(said, dict):
            raise ValueError(f"block_configs: nothing is said of attention in layer {index}")
        attends = not (said.get("no_op") or said.get("replace_with_linear"))
        found_kinds.append("full" if attends else "mlp")
        shared.append(heads // number(said, "n_heads_in_group") if attends else heads)
    return {"layer_types": found_kinds, "num_key_value_heads": shared}


def _layers(found: Fields, of: str) -> Iterator[Layer]:
    """Each layer, those of an encoder first. Raises ValueError."""
    if found.get("add_cross_attention"):
        raise ValueError("add_cross_attention: true: config.json does not say to what")
    if "decoder_layers" in found or found.get("is_encoder_decoder"):
        yield from _with_encoder(found)
        return
    masked = "ForMaskedLM'" in str(found.get("architectures"))
    encodes = (of in ENCODERS or masked) and not found.get("is_decoder")
    every = kinds(found) * (1 + (of in TWICE))
    state = state_layer(found) if {"state", *HYBRID} & {*every} else NO_ATTENTION
    cross = OtherLayer(what="attention to an encoder's outputs", state=None)
    others: Mapping[Kind, Layer] = {"none": NO_ATTENTION, "cross": cross, "state": state}
    stack: Stack = "encoder" if encodes else "decoder"
    for index, kind in enumerate(every):
        yield others.get(kind) or _attention(found, HYBRID.get(kind, kind), index, stack)
        if kind in HYBRID:
            yield replace(state, what=f"{state.what} beside attention")


def _with_encoder(found: Fields) -> Iterator[Layer]:
    """An encoder, and a decoder that also attends to its outputs; Whisper's has a fixed length."""
    whisper = found["model_type"] == "whisper"
    heard = number(found, "max_source_positions", 0, least=0) if whisper else 0
    depth = number(found, "num_hidden_layers")
    yield from [replace(_attention(found, "full", 0, "encoder"), seq_len=heard)] * depth
    heads = found.get("decoder_attention_heads", found.get("num_attention_heads"))
    own = _attention({**found, "num_attention_heads": heads}, "full", 0, "decoder")
    cross = replace(own, stack="cross", causal=False, kv_seq_len=heard, also=())
    count = number(found, "decoder_layers", found.get("num_decoder_layers", depth))
    yield from [own] * count + [cross] * count


def _attention(found: Fields, kind: Kind, index: int, stack: Stack) -> AttentionLayer:
    """The softmax attention of a layer. Raises ValueError."""
    own, decodes = _own(found, kind, index), stack == "decoder"
    heads = number(own, "num_attention_heads")
    latent = bool(own.get("kv_lora_rank")) and "qk_nope_head_dim" in own
    rotated = number(own, "qk_rope_head_dim", 0, least=0) if latent else 0
    width = number(own, "qk_nope_head_dim") + rotated if latent else _width(own, heads)
    field = WINDOWS.get(kind, "")
    if not decodes and "local_attention" in own:  # ModernBERT's counts keys on both sides
        field = field and "local_attention"
    window = number(own, field) if field else 0
    also = [_bias(own), _chosen(own) if kind == "indexed" else ""]
    also += [f"a window of {window} tokens around each"] if window and not decodes else []
    sunk = "add_swa_attention_sink_bias" if kind == "sliding" else "add_full_attention_sink_bias"
    return AttentionLayer(
        stack=stack,
        heads=heads,
        kv_heads=heads if latent else _kv_heads(own, heads),
        d_k=width,
        d_v=number(own, "v_head_dim", width),
        causal=decodes and own.get("is_causal", True) is not False,
        reach="full" if not (window and decodes) else "chunked" if kind == "chunked" else "sliding",
        window=window if decodes else 0,
        seq_len=0 if decodes else _tokens(own),
        stores_cache=decodes and not _reuses(own, index),
        index=_indexed(own, index) if kind == "indexed" else 0,
        also=tuple(filter(None, also)),
        softcap=float(own.get("attn_logit_softcapping") or 0.0),
        sinks=own["model_type"] == "gpt_oss" or bool(own.get(sunk)),
        latent=number(own, "kv_lora_rank") + rotated if latent else 0,
        rotated=rotated,
    )


def _own(found: Fields, kind: Kind, index: int) -> dict[str, Any]:
    """The fields of one layer. Raises ValueError."""
    own, every = dict(found), found.get("per_layer_config")
    for name in SIZES:
        names = [f"{PREFIXES[kind]}{name}"] if kind in PREFIXES else []
        if names == ["global_num_key_value_heads"] and not found.get("attention_k_eq_v"):
            names = []
        sizes = (of_layer(found, one, index) for one in (*names, f"{name}_per_layer", name))
        own[name] = next((one for one in sizes if one is not None), None)
    mine = every.get(str(index), every.get(index)) if isinstance(every, Mapping) else None
    return own | (fields.by_usual_names(mine) if isinstance(mine, Mapping) else {})


def _width(own: Fields, heads: int) -> int:
    """Of a head. Raises ValueError."""
    wide = number(own, "hidden_size")
    if own["head_dim"] is None and wide % heads:
        raise ValueError(f"num_attention_heads: {heads} heads for {wide} columns; wanted a divisor")
    return number(own, "head_dim", wide // heads)


def _kv_heads(own: Fields, heads: int) -> int:
    """Raises ValueError."""
    name = "num_key_value_heads"
    usual = 1 if own.get("multi_query") else heads  # GPT-BigCode
    if own["model_type"] == "falcon" and not own.get("new_decoder_architecture"):
        return 1 if own.get("multi_query", True) else heads  # whatever its number of them says
    if own.get("multi_query_attention") and "multi_query_group_num" in own:  # ChatGLM
        name = "multi_query_group_num"
    found = number(own, name, usual)
    if heads % found:
        raise ValueError(f"{name}: {found} for {heads} heads; wanted a divisor")
    return found


def _reuses(own: Fields, index: int) -> bool:
    """Whether a layer has the keys and values of an earlier one."""
    if isinstance(own.get("kv_source_layers"), list):
        return bool(of_layer(own, "kv_source_layers", index) != index)
    if own.get("use_cla"):
        return index % number(own, "cla_share_factor", 1) > 0
    last = number(own, "num_kv_shared_layers", 0, least=0)
    return last > 0 and index >= number(own, "num_hidden_layers") - last


def _bias(own: Fields) -> str:
    """What is added to the scores; "" for nothing."""
    position = str(own.get("position_embedding_type"))
    if own.get("alibi") or position == "alibi":
        return ALIBI
    relative = own.get("relative_attention") or position.startswith("relative")
    return RELATIVE if relative else BIASED.get(own["model_type"], "")


def _indexed(own: Fields, index: int) -> int:
    """Numbers of an indexer's key; 0 in a layer that uses the choice of an earlier one."""
    often, offset = number(own, "index_topk_freq", 1), number(own, "index_skip_topk_offset", 2)
    shares = max(index - offset + 1, 0) % often != 0
    if every := own.get("indexer_types"):
        shares = str(of_layer({"indexer_types": [*every]}, "indexer_types", index))[0] in "sS"
    keys = number(own, "index_head_dim", 0, least=0) * number(own, "indexer_kv_heads", 1)
    return 0 if shares else keys


def _chosen(own: Fields) -> str:
    most = own.get("index_topk")
    blocks = "blocks of keys" if {"index_block_size", "sparse_block_size"} & own.keys() else "keys"
    to = f" to {most} {blocks} that an indexer chooses" if most else ""
    return f"sparse attention{to}"


def _tokens(own: Fields) -> int:
    """Those of an encoder of images, which takes no other number; 0 for what takes any."""
    if own["model_type"] not in EXTRA_TOKENS:
        return 0
    side = number(own, "image_size") // number(own, "patch_size")
    return EXTRA_TOKENS[own["model_type"]] + side * side
