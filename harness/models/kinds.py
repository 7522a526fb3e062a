"""Of which kind each layer is, by tables of the lists and periods in which configurations say it,
and what those that keep no keys and values keep of a sequence.

A state is in fp32 unless the configuration names another dtype; of a convolution before it the last
inputs are kept in the dtype of the model, one fewer than its kernel takes.
"""

import re
from collections.abc import Callable, Mapping
from itertools import cycle, islice
from typing import Any, Literal

from ..files.errors import shown
from .fields import ALIASES, PARTS, Fields, number
from .layers import OtherLayer

Kind = Literal[
    "full", "sliding", "chunked", "indexed", "state", "none", "hybrid", "hybrid_sliding", "cross"
]
"""hybrid: attention and something with a state in one layer. indexed: attention to those keys that
an indexer chooses. cross: to what an encoder of images gives.
"""
WORDS: dict[Any, Kind] = {
    **dict.fromkeys(("full_attention", "attention", "full", "global", "*"), "full"),
    **dict.fromkeys(("sliding_attention", "sliding", "local", "local_attention", "swa"), "sliding"),
    "chunked_attention": "chunked",
    **dict.fromkeys(("indexed_attention", "minimax_m3_sparse"), "indexed"),
    **dict.fromkeys(("linear_attention", "mamba", "mamba2", "recurrent", "conv", "M"), "state"),
    **dict.fromkeys(("mlp", "moe", "dummy", "-", "E"), "none"),
    "hybrid": "hybrid",
    "hybrid_sliding": "hybrid_sliding",
}
LISTS: dict[str, Mapping[Any, Kind]] = {
    "compress_ratios": {0: "full"},  # DeepSeek-V4; what is kept of compressed keys is not known
    "block_types": {"recurrent": "state", "attention": "sliding"},
    "layer_types": WORDS,
    "hybrid_override_pattern": WORDS,
    "attn_type_list": {0: "state", 1: "full"},
    "hybrid_layer_pattern": {0: "full", 1: "sliding"},
    "sparse_attention_freq": {0: "full", 1: "indexed"},
    "no_rope_layers": {0: "full", 1: "chunked"},
    "sliding_window_pattern": {"L": "sliding", "G": "full"},
}
"""Lists, or texts, with one for each layer, and what each of theirs means."""
REPEATED = ("block_types", "sliding_window_pattern")
"""Of these, those that begin again where they end."""
MEMBERS: dict[str, tuple[Kind, Kind, int]] = {
    "linear_full_attn_layers": ("full", "state", 1),
    "attn_layer_indices": ("full", "state", 0),
    "full_attn_idxs": ("full", "state", 0),
    "hybrid_layer_ids": ("hybrid", "state", 0),
    "cross_attention_layers": ("cross", "full", 0),
}
"""Lists of the numbers of layers: what those are, the others, and the number of the first layer."""
PERIODS: dict[str, tuple[Kind, Kind, int | str]] = {
    "attn_layer_period": ("full", "state", "attn_layer_offset"),
    "full_attention_interval": ("full", "state", -1),
    "layer_group_size": ("full", "state", -1),
    "no_rope_layer_interval": ("full", "chunked", -1),
    "global_attn_every_n_layers": ("full", "sliding", 0),
    "sliding_window_pattern": ("full", "sliding", -1),
}
"""One layer in so many: what it is, the others, and which of them it is, or the field with that."""
SIZES = ("num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim")
"""Fields that a layer may have of its own: by its number, or by its kind, with these prefixes."""
PREFIXES: Mapping[Kind, str] = {"sliding": "swa_", "full": "global_"}
NEEDS = {
    "no_rope_layers": "attention_chunk_size",  # Llama 4's layers with rotated positions have chunks
    "no_rope_layer_interval": "attention_chunk_size",
    "sliding_window_pattern": "sliding_window",
}
"""What says something of a layer's keys only beside another field."""
RECURRENT = ("xlstm", "rwkv")
"""Types without attention of which attnbench does not know the state."""
LIGHTNING = ("minimax", "minimax_text_01", "bailing_moe_linear", "bailing_moe_v2_linear")
"""Types of models whose linear layers keep k v alone, as many numbers as a head has squared."""


def kinds(fields: Fields) -> list[Kind]:
    """One for each layer. Raises ValueError, with the layer of which it is not known."""
    found = {one: it for one, it in fields.items() if it and fields.get(NEEDS.get(one, one))}
    if "no_rope_layers" in fields and fields.get("attention_chunk_size"):
        found.setdefault("no_rope_layer_interval", 4)
    for name, words in LISTS.items():
        if name in found and not (name in PERIODS and isinstance(found[name], int)):
            return _listed(found, name, words)
    every = range(number(fields, "num_hidden_layers"))
    for name, (those, others, first) in MEMBERS.items():
        if isinstance(given := fields.get(name), list):
            return [those if index + first in given else others for index in every]
    for name, (those, others, at) in PERIODS.items():
        if name in found:
            period = number(found, name)
            place = number(fields, at, 0, least=0) if isinstance(at, str) else at % period
            return [those if index % period == place else others for index in every]
    if fields.get("sliding_window") and (first := fields.get("max_window_layers", 0)):
        return ["full" if index < first else "sliding" for index in every]
    return [_usual(fields)] * len(every)


def _usual(fields: Fields) -> Kind:
    """Of a layer about which nothing else is said. Raises ValueError where some have a state."""
    if "mamba_d_ssm" in fields:  # Falcon-H1: attention and Mamba beside one another
        return "hybrid"
    stateful = "num_attention_heads" not in fields and "state_size" in fields
    if stateful or fields.get("model_type") in RECURRENT:
        return "state"
    if named := next((one for one in STATES if fields.get(one)), None):
        raise ValueError(f"{named} is given, and no list of which layers have a state")
    if fields.get("index_head_dim") and fields.get("kv_lora_rank"):
        return "indexed"
    return "sliding" if fields.get("sliding_window") else "full"


def _listed(fields: Fields, name: str, words: Mapping[Any, Kind]) -> list[Kind]:
    """Raises ValueError."""
    given = fields[name]
    if not isinstance(given, list | str):
        raise ValueError(f"{name}: {shown(given)}; wanted a list with one for each layer")
    count = number(fields, "num_hidden_layers", len(given))
    more = fields.get("num_nextn_predict_layers") or 0  # some lists go on with those that draft
    if name not in REPEATED and len(given) not in (count, count + more):
        raise ValueError(f"{name}: {len(given)} for {count} layers; wanted one for each")
    found = []
    for index, word in enumerate(islice(cycle(given), count)):
        if not isinstance(word, str | int) or word not in words:
            raise ValueError(
                f"{name}: {shown(word)} in layer {index}: what it keeps for a token is not known"
            )
        found.append(words[word])
    return found


def state_layer(fields: Fields) -> OtherLayer:
    """The layers with a state of this configuration. Raises ValueError for what is no size."""
    named = next((one for one in STATES if one in fields), "")
    if named:
        what, kernel, sizes = STATES[named]
        columns, numbers = sizes(fields)
        before = columns * (number(fields, kernel, 4) - 1)
    elif fields.get("model_type") in LIGHTNING:
        what, before, (_, numbers) = "linear attention", 0, _of_heads(fields)
    else:
        what = "recurrence" if fields.get("model_type") in RECURRENT else "an unknown kind"
        return OtherLayer(what=what, state=None)
    wide = 0 if fields.get("mamba_ssm_dtype") in ("bfloat16", "float16") else numbers
    return OtherLayer(what=what, state=before + numbers - wide, state_fp32=wide)


def _convolution(fields: Fields) -> tuple[int, int]:
    return number(fields, "hidden_size"), 0


def _recurrence(fields: Fields) -> tuple[int, int]:
    columns = number(fields, "lru_width", fields.get("hidden_size"))
    return columns, columns


def _delta_rule(fields: Fields) -> tuple[int, int]:
    heads, width = number(fields, "linear_num_value_heads"), number(fields, "linear_value_head_dim")
    keys = number(fields, "linear_key_head_dim")
    mixed = 2 * keys * number(fields, "linear_num_key_heads") + heads * width
    return mixed, heads * keys * width


def _of_heads(fields: Fields) -> tuple[int, int]:
    """Where q, k and v have a convolution each."""
    heads = number(fields, "linear_num_heads", fields.get("num_attention_heads"))
    width = fields.get("linear_head_dim") or fields.get("head_dim")
    width = number({"head_dim": width}, "head_dim", number(fields, "hidden_size") // heads)
    return 3 * heads * width, heads * width**2


def _mamba(fields: Fields) -> tuple[int, int]:
    usual = number(fields, "expand", 2) * number(fields, "hidden_size")
    columns = number(fields, "mamba_d_ssm", usual)
    return columns, columns * number(fields, "state_size")


def _mamba2(fields: Fields) -> tuple[int, int]:
    """Which has heads, and convolves B and C too."""
    (columns, _), states = _mamba(fields), number(fields, "state_size")
    if fields.get("mamba_width", "auto") != "auto":
        columns = number(fields, "mamba_heads") * number(fields, "mamba_width")
    return columns + 2 * number(fields, "n_groups", 1) * states, columns * states


STATES: dict[str, tuple[str, str, Callable[[Fields], tuple[int, int]]]] = {
    # LFM2
    "conv_L_cache": ("short convolution", "conv_L_cache", _convolution),
    # RG-LRU (De et al. 2024, Griffin, arXiv:2402.19427)
    "conv1d_width": ("gated linear recurrence", "conv1d_width", _recurrence),
    # Gated DeltaNet (Yang et al. 2024, arXiv:2412.06464), as in Qwen3-Next
    "linear_num_value_heads": ("linear attention", "linear_conv_kernel_dim", _delta_rule),
    # Kimi Delta Attention (arXiv:2510.26692)
    "linear_conv_kernel_dim": ("linear attention", "linear_conv_kernel_dim", _of_heads),
    "dt_rank": ("Mamba", "conv_kernel", _mamba),  # arXiv:2312.00752
    "mamba_heads": ("Mamba-2", "conv_kernel", _mamba2),  # arXiv:2405.21060
    "state_size": ("Mamba", "conv_kernel", _mamba),
}
"""By a field that only layers of one kind have: what they are, the field of their convolution's
kernel, and how many columns it takes and how many numbers a state has.
"""


# ---- fields that may change attention and were not read ------------------------------------------

# What may say something about attention: an unknown field of such a name is named in a caution.
ABOUT_ATTENTION = re.compile(
    r"attn|attention|head|window|layer_type|sink|chunk|lora_rank|softcap|(^|_)kv(_|$)|multi_query|alibi|per_layer_conf"
    r"|mamba|ssm|recurren|hybrid|block_type|compress|kpool"
)
READ = {
    *(name for usual, others in ALIASES.items() for name in (usual, *others)),
    *(f"{prefix}{name}" for prefix in PREFIXES.values() for name in SIZES),
    *(f"{name}_per_layer" for name in SIZES),
    *(*PARTS, *LISTS, *MEMBERS, *PERIODS, *NEEDS.values(), *STATES, *SIZES),
    *("use_sliding_window", "max_window_layers", "attn_layer_offset", "local_attention", "alibi"),
    *("per_layer_config", "num_kv_shared_layers", "kv_source_layers", "attention_k_eq_v"),
    *("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "indexer_kv_heads", "mamba_d_ssm"),
    *("multi_query", "multi_query_attention", "relative_attention", "decoder_attention_heads"),
    *("add_swa_attention_sink_bias", "add_full_attention_sink_bias", "linear_key_head_dim"),
    *("linear_num_key_heads", "linear_value_head_dim", "linear_num_heads", "linear_head_dim"),
}
# Whole names: how it is computed or trained; scales, gates and norms beside the scores; what else a
# layer has.
HARMLESS = re.compile(
    r"\w*dropout(_prob|_rate)?|attn_p?drop|_?attn_impl\w*|output_attentions|attn_type|mamba_dt_\w+"
    r"|(use_|mamba_|lm_)?(attention|attention_out|attn|conv|proj|head|qkv)_bias|\w*_multipliers?"
    r"|\w*(layer_?norm|rms_norm)(_eps)?|layernorm_\w+_attention_(alpha|beta)|mamba_norm_before_gate"
    r"|(mamba_)?chunk_size|chunk_size_(feed_forward|lm_head)|\w*flash_att(n|ention)|\w*_hidden_act"
    r"|(mtp|moe|mlp|rope)_\w+|(full|linear)_attn_(alpha|beta)_factor|(final|router)_logit_softcapping"
    r"|scale_attn_\w+|attn_scale|query_pre_attn_scalar|attn_temperature_tuning|attention_value_scale"
    r"|\w*softmax_in_fp32|reorder_and_upcast_attn|attn_rotary_emb|attn_output_gate|gated_attn"
    r"|use_(attention|head_wise_attn)_gate|use_mamba_kernels|use_mamba2|mamba_use_mlp|ssm_cfg"
    r"|(num_ln_in_)?parallel_attn|offset_alibi|alibi_bias_max|hc_sinkhorn_iters|shared_expert_sink"
    r"|relative_attention_(max_distance|num_buckets)|heads_per_ngram|use_shared_attention_adapter"
    r"|attention_hidden_size|attention_projection_layout|use_sparse_attention|pruned_heads"
    r"|(sparse_num_index|index_n|indexer_n)_heads|q_lora_rank|(qk|swa_true)_head_dim"
    r"|swa_attention_type|use_bidirectional_attention"
)


def unknown_names(given: Fields, found: Fields) -> list[str]:
    """Sorted. `found`: by their usual names; another window than it has is unknown too."""
    windows = ("sliding_window", *ALIASES["sliding_window"])
    return sorted(
        name
        for name, value in given.items()
        if ABOUT_ATTENTION.search(name)
        and value not in (None, False, 0, [], {})
        and not HARMLESS.fullmatch(name)
        and (found.get("sliding_window") != value if name in windows else name not in READ)
    )
