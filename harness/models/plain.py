"""Layers by the fields of a configuration; needs no other package.

What a field means, and what it is in a type of DEFAULTS if it is not given, follows the
configuration and modeling files of transformers 5.23. Layers are read from fields, never guessed
from the name of a model; what is not understood is named in a caution.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..files.errors import BadInput, shown
from . import config_file, fields, parameters
from .fields import NOT_GIVEN, Fields, number, of_layer
from .kinds import Kind, kinds
from .layers import NO_ATTENTION, AttentionLayer, Layer, Model, OtherLayer, counted
from .states import state_layer

INSTALL = "install transformers, which fills in what is not given: pip install 'attnbench[hf]'"
WITHOUT = (
    "config.json was read without transformers: its fields as they stand. With it (pip install"
    " 'attnbench[hf]') fields that are not given have the defaults of the model's type, and the"
    " weights of more types are counted."
)
ALIBI = "a bias by distance (ALiBi)"
RELATIVE = "a bias by relative position"
BIASED = {"bloom": ALIBI, "t5": RELATIVE, "mt5": RELATIVE, "umt5": RELATIVE, "deberta": RELATIVE}
BIASED |= {"deberta-v2": RELATIVE, "mpnet": RELATIVE, "longt5": RELATIVE}
"""Types whose scores have a bias that no field names."""
ENCODERS = {
    *("bert", "roberta", "xlm-roberta", "distilbert", "electra", "camembert", "albert", "ernie"),
    *("deberta", "deberta-v2", "mpnet", "modernbert", "nomic_bert", "esm", "eurobert", "rembert"),
    *("vit", "siglip_vision_model", "siglip_text_model", "clip_vision_model", "dinov2", "deit"),
}
RECURRENT = ("xlstm", "rwkv")
"""Types without attention of which attnbench does not know the state."""
TWICE = ("longcat_flash",)
"""Types with two attentions in a layer (LongCat-Flash, arXiv:2509.01322, figure 2)."""
EXTRA_TOKENS = {"vit": 1, "clip_vision_model": 1, "dinov2": 1, "deit": 2, "siglip_vision_model": 0}
"""Of encoders of images: tokens beside those of patches."""
QWEN = {
    "num_key_value_heads": 32,
    "max_position_embeddings": 32768,
    "sliding_window": 4096,
    "use_sliding_window": False,
    "max_window_layers": 28,
}
GEMMA = {"num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096}
DEFAULTS: dict[str, dict[str, Any]] = {
    "gpt2": {"max_position_embeddings": 1024},
    "llama": {"max_position_embeddings": 2048},
    "mistral": {
        "num_key_value_heads": 8, "sliding_window": 4096, "max_position_embeddings": 131072,
    },
    "mixtral": {"num_key_value_heads": 8, "max_position_embeddings": 131072},
    "qwen2": QWEN,
    "qwen3": {**QWEN, "head_dim": 128},
    "gemma2": {
        **GEMMA, "max_position_embeddings": 8192, "sliding_window_pattern": 2,
        "attn_logit_softcapping": 50.0,
    },
    "gemma3_text": {**GEMMA, "max_position_embeddings": 131072, "sliding_window_pattern": 6},
    "bert": {"max_position_embeddings": 512},
    "vit": {"image_size": 224, "patch_size": 16},
    "whisper": {"max_source_positions": 1500, "max_position_embeddings": 448},
}  # fmt: skip
"""Types that are read without asking transformers, with what they are if they are not given."""
WITHOUT_WINDOW = ("llama", "gpt2", "bert", "vit", "whisper")
"""Types that have no window, whatever a configuration says."""
NULL_SAYS_NONE = ("sliding_window", "attn_logit_softcapping")  # where the default is some


def model(data: Mapping[str, Any], name: str, place: str, resolved: Fields | None = None) -> Model:
    """The model of a configuration. `resolved`: the decoder's fields as transformers has them, for
    what is not given. Raises BadInput.
    """
    try:
        return _model(data, name, resolved)
    except ValueError as error:
        lacks = resolved is None and NOT_GIVEN in str(error)
        hint = f"; {INSTALL}{config_file.own_code(data)}" if lacks else ""
        raise BadInput(f"{place}: {error}{hint}") from None


def _model(data: Fields, name: str, resolved: Fields | None) -> Model:
    kind = str(data.get("model_type"))
    given = fields.decoder_of(data)
    of = str(given.get("model_type") or kind)
    usual = {**DEFAULTS.get(of, {}), **(resolved or {})}
    for one in NULL_SAYS_NONE:
        if one in given and given[one] is None:
            usual.pop(one, None)
    own = fields.by_usual_names(given)
    found = {**fields.by_usual_names(usual), **own, "model_type": of}
    if resolved and resolved.get("layer_types"):  # which says more than a list of older names
        found["layer_types"] = resolved["layer_types"]
    if many := config_file.too_many(found):
        raise ValueError(f"{many}; wanted at most {config_file.MOST_COUNT}")
    odd = [
        one
        for one in _window_names(given)
        if of in WITHOUT_WINDOW or found["sliding_window"] != given[one]
    ]
    if odd and of in WITHOUT_WINDOW:
        del found["sliding_window"]
    if found.get("add_cross_attention"):
        raise ValueError("add_cross_attention: true: to what is not known")
    layers = counted((one, 1) for one in _layers(found, of))
    attends = [one for one, _ in layers if isinstance(one, AttentionLayer)]
    if of in DEFAULTS or resolved is None:
        weights, uncounted = parameters.weights_or_why(kind, found, layers, data)
    else:
        weights, uncounted = None, ""
    kv_dtype, unknown_kv = fields.kv_dtype_of(data)
    cautions = [
        f"{shown(one)} is not known, and may change attention"
        for one in (*odd, *fields.unknown_names(given))
    ]
    if unknown_kv:
        cautions.append(unknown_kv)
    elsewhere = resolved is None and of not in DEFAULTS
    if elsewhere and any(one.reach == "sliding" for one in attends) and _unsaid(found):
        cautions.append("which layers have the window is not said; it counts in all of them")
    fixed = {one.seq_len for one in attends if one.stack == "encoder"} - {0}
    longest = found.get("max_position_embeddings")
    if fixed and all(one.stack == "encoder" for one in attends):
        longest = max(fixed)
    return Model(
        name=name,
        model_type=kind,
        d_model=number(found, "hidden_size"),
        layers=layers,
        max_context=None if longest is None else number(found, "max_position_embeddings", longest),
        dtype=fields.dtype_of(data, given),
        weights=weights,
        uncounted=uncounted,
        kv_dtype=kv_dtype,
        left_out=fields.left_out(data),
        cautions=tuple(cautions),
        reader=WITHOUT if elsewhere else "",
    )


def _window_names(given: Fields) -> list[str]:
    names = ("sliding_window", *fields.ALIASES["sliding_window"])
    return [one for one in names if given.get(one)]


def _unsaid(found: Fields) -> bool:
    """Whether nothing says which layers have a window."""
    return all(kind == "sliding" for kind in kinds(found)) and "layer_types" not in found


def _layers(found: Fields, of: str) -> Iterator[Layer]:
    """Each layer, those of an encoder first. Raises ValueError."""
    if of in RECURRENT:
        count = number(found, "num_hidden_layers")
        yield from [OtherLayer(what="recurrence", state=None)] * count
        return
    if "decoder_layers" in found or found.get("is_encoder_decoder"):
        yield from _with_encoder(found, of)
        return
    names = found.get("architectures") or ()
    masked = isinstance(names, list) and any(str(one).endswith("ForMaskedLM") for one in names)
    encodes = (of in ENCODERS or masked) and not found.get("is_decoder")
    every = kinds(found) * (1 + (of in TWICE))
    if encodes:
        yield from (_encoder(found, of, kind) for kind in every)
        return
    modes = found.get("kv_sharing_modes") or _sharing(found, len(every))
    state = state_layer(found) if {"state", "hybrid", "hybrid_sliding"} & set(every) else None
    for index, kind in enumerate(every):
        if kind == "none":
            yield NO_ATTENTION
        elif kind == "cross":
            yield OtherLayer(what="attention to an encoder's outputs", state=None)
        if kind not in ("none", "cross", "state"):
            yield _attention(found, of, kind, index, reuses=modes[index] == "reuse")
        if kind in ("state", "hybrid", "hybrid_sliding") and state is not None:
            beside = kind != "state"
            yield replace(state, what=f"{state.what} beside attention") if beside else state


def _sharing(found: Fields, count: int) -> list[str | None]:
    """Of each layer, whether it reuses the keys and values of an earlier one."""
    if isinstance(found.get("kv_source_layers"), list):
        return [
            None if of_layer(found, "kv_source_layers", index) == index else "reuse"
            for index in range(count)
        ]
    last = number(found, "num_kv_shared_layers", 0, least=0)
    every = number(found, "cla_share_factor", 1) if found.get("use_cla") else 1
    return ["reuse" if index >= count - last or index % every else None for index in range(count)]


def _attention(found: Fields, of: str, kind: Kind, index: int, *, reuses: bool) -> AttentionLayer:
    """The softmax attention of a decoder's layer. Raises ValueError."""
    own = {**found, **_overrides(found, kind, index)}
    heads = number(
        {"num_attention_heads": of_layer(own, "num_attention_heads", index)}, "num_attention_heads"
    )
    also = [_bias(own, of)] if _bias(own, of) else []
    also += [_chosen(own)] if kind == "indexed" else []
    local, chunked = kind in ("sliding", "hybrid_sliding"), kind == "chunked"
    sunk = "add_swa_attention_sink_bias" if local else "add_full_attention_sink_bias"
    window = "attention_chunk_size" if chunked else "sliding_window" if local else ""
    common: dict[str, Any] = {
        "stack": "decoder",
        "heads": heads,
        "causal": own.get("is_causal", True) is not False,
        "reach": "sliding" if local else "chunked" if chunked else "full",
        "window": number(own, window) if window else 0,
        "stores_cache": not reuses,
        "index": _indexed(own, kind, index),
        "also": tuple(also),
        "softcap": float(own.get("attn_logit_softcapping") or 0.0),
        "sinks": of == "gpt_oss" or bool(own.get(sunk)),
    }
    if own.get("kv_lora_rank") and "qk_nope_head_dim" in own:
        rotated = number(own, "qk_rope_head_dim", 0, least=0)
        return AttentionLayer(
            kv_heads=heads,
            d_k=number(own, "qk_nope_head_dim") + rotated,
            d_v=number(own, "v_head_dim"),
            latent=number(own, "kv_lora_rank") + rotated,
            rotated=rotated,
            **common,
        )
    width = _width(own, heads, index)
    return AttentionLayer(
        kv_heads=_kv_heads(own, of, heads, index),
        d_k=width,
        d_v=number(own, "v_head_dim", width),
        **common,
    )


def _overrides(found: Fields, kind: Kind, index: int) -> dict[str, Any]:
    """What one layer has of its own: by its number, or by its kind."""
    by_number = found.get("per_layer_config") or {}
    own = (
        by_number.get(str(index), by_number.get(index)) if isinstance(by_number, Mapping) else None
    )
    made = dict(own) if isinstance(own, Mapping) else {}
    if blocks := found.get("block_configs"):
        shared = blocks[index]["attention"].get("n_heads_in_group")
        heads = number(found, "num_attention_heads")
        made |= {
            "num_key_value_heads": heads // number({"n_heads_in_group": shared}, "n_heads_in_group")
        }
    if (every := found.get("num_attention_heads_per_layer")) is not None:
        made["num_attention_heads"] = of_layer({"every": every}, "every", index)
    if kind == "full":
        more = {"head_dim": found.get("global_head_dim")}
        if found.get("attention_k_eq_v"):
            more["num_key_value_heads"] = found.get("num_global_key_value_heads")
    elif kind == "sliding":
        names = ("num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim")
        more = {one: found.get(f"swa_{one}") for one in names}
        other = found.get("attention_other_setting")
        if isinstance(other, Mapping):  # Step 3.5
            more |= {one: fields.by_usual_names(other).get(one) for one in names}
        if "num_sliding_attention_heads" in found:
            more["num_attention_heads"] = found["num_sliding_attention_heads"]
    else:
        more = {}
    return made | {one: it for one, it in more.items() if it is not None}


def _width(own: Fields, heads: int, index: int) -> int:
    """Of a head. Raises ValueError."""
    given = of_layer(own, "head_dim", index)
    if given is not None:
        return number({"head_dim": given}, "head_dim")
    columns = number(own, "hidden_size")
    if columns % heads:
        raise ValueError(
            f"num_attention_heads: {heads} heads for {columns} columns; wanted a divisor"
        )
    return columns // heads


def _kv_heads(own: Fields, of: str, heads: int, index: int) -> int:
    """Raises ValueError."""
    given = of_layer(own, "num_key_value_heads", index)
    if of == "falcon":  # which has the number of them also where it has one, or as many as heads
        many = own.get("new_decoder_architecture")
        given = given if many else 1 if own.get("multi_query", True) else heads
    elif own.get("multi_query") and given is None:  # GPT-BigCode
        given = 1
    elif own.get("multi_query_attention"):  # ChatGLM
        given = own.get("multi_query_group_num", given)
    found = (
        heads if given is None else number({"num_key_value_heads": given}, "num_key_value_heads")
    )
    if heads % found:
        raise ValueError(f"num_key_value_heads: {found} for {heads} heads; wanted a divisor")
    return found


def _bias(own: Fields, of: str) -> str:
    """What is added to the scores; "" for nothing."""
    position = str(own.get("position_embedding_type"))
    if own.get("alibi") or position == "alibi":
        return ALIBI
    if own.get("relative_attention") or position.startswith("relative"):
        return RELATIVE
    return BIASED.get(of, "")


def _indexed(own: Fields, kind: Kind, index: int) -> int:
    """Numbers of an indexer's key; 0 in a layer that uses the choice of an earlier one."""
    if kind != "indexed" or "index_head_dim" not in own:
        return 0
    every = own.get("indexer_types") or own.get("index_topk_pattern")
    if every is not None:
        if index >= len(every):
            raise ValueError(f"indexer_types: {shown(every)}; wanted one for layer {index} too")
        shares = str(every[index]).lower().startswith("s")
    else:
        often, offset = number(own, "index_topk_freq", 1), own.get("index_skip_topk_offset", 2)
        shares = max(index - offset + 1, 0) % often != 0
    keys = number(own, "index_head_dim") * number(own, "indexer_kv_heads", 1)
    return 0 if shares else keys


def _chosen(own: Fields) -> str:
    most = own.get("index_topk")
    blocks = "blocks of keys" if "index_block_size" in own or "sparse_block_size" in own else "keys"
    return (
        f"sparse attention to {most} {blocks} that an indexer chooses"
        if most
        else "sparse attention"
    )


# ---- encoders ------------------------------------------------------------------------------------


def _encoder(found: Fields, of: str, kind: Kind = "full", seq_len: int = 0) -> AttentionLayer:
    """Every token sees every other, or those in a window around it. Raises ValueError."""
    heads = number(found, "num_attention_heads")
    width = _width(found, heads, 0)
    bias = _bias(found, of)
    window = 0
    if kind == "sliding":  # ModernBERT's counts keys on both sides
        window = number(
            found, "local_attention" if "local_attention" in found else "sliding_window"
        )
    around = [f"a window of {window} tokens around each"] if window else []
    if of in EXTRA_TOKENS:
        (high, wide), (down, across) = (_sides(found, one) for one in ("image_size", "patch_size"))
        seq_len = EXTRA_TOKENS[of] + (high // down) * (wide // across)
    return AttentionLayer(
        stack="encoder",
        heads=heads,
        kv_heads=_kv_heads(found, of, heads, 0),
        d_k=width,
        d_v=width,
        causal=False,
        seq_len=seq_len,
        stores_cache=False,
        also=tuple([bias] if bias else []) + tuple(around),
    )


def _sides(found: Fields, name: str) -> tuple[int, int]:
    value = found.get(name)
    both = value if isinstance(value, list) and len(value) == 2 else [value, value]
    high, wide = (number({name: one}, name) for one in both)
    return high, wide


def _with_encoder(found: Fields, of: str) -> Iterator[Layer]:
    """An encoder, and a decoder that also attends to its outputs; Whisper's has a fixed length."""
    heard = number(found, "max_source_positions", 0, least=0) if of == "whisper" else 0
    depth = number(found, "num_hidden_layers")
    yield from [_encoder(found, of, seq_len=heard)] * depth
    heads = number(found, "decoder_attention_heads", found.get("num_attention_heads"))
    width = _width(found, heads, 0)
    bias = _bias(found, of)
    own = AttentionLayer(
        stack="decoder",
        heads=heads,
        kv_heads=heads,
        d_k=width,
        d_v=width,
        causal=True,
        also=(bias,) if bias else (),
    )
    cross = replace(own, stack="cross", causal=False, kv_seq_len=heard, also=())
    count = number(found, "decoder_layers", found.get("num_decoder_layers", depth))
    yield from [own] * count
    yield from [cross] * count
