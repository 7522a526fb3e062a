"""Which fields of a configuration may change attention, and were not read."""

import re

from .fields import ALIASES, PARTS, Fields
from .kinds import LISTS, MEMBERS, NEEDS, PERIODS, PREFIXES, SIZES, STATES

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
