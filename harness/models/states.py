"""What layers keep of a sequence in place of keys and values, by the sizes of a configuration.

The state itself is in fp32 unless the configuration names another dtype; of a convolution before it
the last inputs are kept in the dtype of the model, one fewer than its kernel takes.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from .fields import Fields, number
from .layers import OtherLayer

LIGHTNING = ("minimax", "minimax_text_01", "bailing_moe_linear", "bailing_moe_v2_linear")
"""Types of models whose linear layers keep k v alone, as many numbers as a head has squared."""
HALF = ("bfloat16", "float16")


def state_layer(fields: Fields) -> OtherLayer:
    """The layers with a state of this configuration. Raises ValueError for what is no size."""
    made = (way(fields) for way in WAYS)
    found = next((one for one in made if one is not None), None)
    if found is None:
        return OtherLayer(what="an unknown kind", state=None)
    dtypes = {fields.get(name) for name in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype")}
    if dtypes & set(HALF) and found.state is not None:
        return replace(found, state=found.state + found.state_fp32, state_fp32=0)
    return found


def _convolution(fields: Fields) -> OtherLayer | None:
    """LFM2."""
    if "conv_L_cache" not in fields:
        return None
    columns = number(fields, "hidden_size")
    return OtherLayer(
        what="short convolution", state=columns * (number(fields, "conv_L_cache") - 1)
    )


def _gated_recurrence(fields: Fields) -> OtherLayer | None:
    """RG-LRU (De et al. 2024, Griffin, arXiv:2402.19427)."""
    if "lru_width" not in fields and "conv1d_width" not in fields:
        return None
    columns = number(fields, "lru_width", fields.get("hidden_size"))
    before = columns * (number(fields, "conv1d_width", 4) - 1)
    return OtherLayer(what="gated linear recurrence", state=before, state_fp32=columns)


def _delta_rule(fields: Fields) -> OtherLayer | None:
    """Gated DeltaNet (Yang et al. 2024, arXiv:2412.06464), as in Qwen3-Next."""
    if "linear_num_value_heads" not in fields:
        return None
    heads, columns = (
        number(fields, "linear_num_value_heads"),
        number(fields, "linear_value_head_dim"),
    )
    keys = number(fields, "linear_key_head_dim")
    mixed = 2 * keys * number(fields, "linear_num_key_heads") + heads * columns
    before = mixed * (number(fields, "linear_conv_kernel_dim", 4) - 1)
    return OtherLayer(what="linear attention", state=before, state_fp32=heads * keys * columns)


def _delta_attention(fields: Fields) -> OtherLayer | None:
    """Kimi Delta Attention (arXiv:2510.26692), where q, k and v have a convolution each."""
    inside = fields.get("linear_attn_config")
    if isinstance(inside, dict):
        heads, columns = number(inside, "num_heads"), number(inside, "head_dim")
        kernel = number(inside, "short_conv_kernel_size", 4)
    elif "linear_num_heads" in fields:
        heads, columns = number(fields, "linear_num_heads"), number(fields, "linear_head_dim")
        kernel = number(fields, "linear_conv_kernel_dim", 4)
    elif "short_conv_kernel_size" in fields:
        heads, columns = number(fields, "num_attention_heads"), number(fields, "head_dim")
        kernel = number(fields, "short_conv_kernel_size")
    else:
        return None
    before = 3 * heads * columns * (kernel - 1)
    return OtherLayer(what="linear attention", state=before, state_fp32=heads * columns**2)


def _mamba(fields: Fields) -> OtherLayer | None:
    """Mamba (arXiv:2312.00752), or Mamba-2 (arXiv:2405.21060), which has heads and convolves B and
    C too.
    """
    if "state_size" not in fields:
        return None
    states, kernel = number(fields, "state_size"), number(fields, "conv_kernel", 4)
    columns = fields.get("mamba_d_ssm") or number(fields, "expand", 2) * number(
        fields, "hidden_size"
    )
    heads = fields.get("mamba_heads") or fields.get("num_heads")
    if "dt_rank" in fields or not heads:
        before = columns * (kernel - 1)
        return OtherLayer(what="Mamba", state=before, state_fp32=columns * states)
    width = fields.get("mamba_width", fields.get("head_dim") if "num_heads" in fields else None)
    if width not in (None, "auto"):
        columns = number({"heads": heads}, "heads") * number({"width": width}, "width")
    before = (columns + 2 * number(fields, "n_groups", 1) * states) * (kernel - 1)
    return OtherLayer(what="Mamba-2", state=before, state_fp32=columns * states)


def _lightning(fields: Fields) -> OtherLayer | None:
    """Lightning attention (arXiv:2401.04658), as in MiniMax-01."""
    if fields.get("model_type") not in LIGHTNING:
        return None
    heads = number(fields, "num_attention_heads")
    columns = number(fields, "head_dim", number(fields, "hidden_size") // heads)
    return OtherLayer(what="linear attention", state_fp32=heads * columns**2)


WAYS: Collection[Callable[[Fields], OtherLayer | None]] = (
    _convolution,
    _gated_recurrence,
    _delta_rule,
    _delta_attention,
    _mamba,
    _lightning,
)
