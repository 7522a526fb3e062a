"""What layers keep of a sequence in place of keys and values, by the sizes of a configuration.

The state itself is in fp32 unless the configuration names another dtype; of a convolution before it
the last inputs are kept in the dtype of the model, one fewer than its kernel takes.
"""

from collections.abc import Callable

from .fields import Fields, number
from .layers import OtherLayer

LIGHTNING = ("minimax", "minimax_text_01", "bailing_moe_linear", "bailing_moe_v2_linear")
"""Types of models whose linear layers keep k v alone, as many numbers as a head has squared."""
HALF = ("bfloat16", "float16")


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
        return OtherLayer(what="an unknown kind", state=None)
    if {fields.get("mamba_ssm_dtype"), fields.get("mamba_ssm_cache_dtype")} & set(HALF):
        return OtherLayer(what=what, state=before + numbers)
    return OtherLayer(what=what, state=before, state_fp32=numbers)


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
    "conv_L_cache": (
        "short convolution",  # LFM2
        "conv_L_cache",
        lambda fields: (number(fields, "hidden_size"), 0),
    ),
    # RG-LRU (De et al. 2024, Griffin, arXiv:2402.19427)
    "lru_width": ("gated linear recurrence", "conv1d_width", _recurrence),
    "conv1d_width": ("gated linear recurrence", "conv1d_width", _recurrence),
    # Gated DeltaNet (Yang et al. 2024, arXiv:2412.06464), as in Qwen3-Next
    "linear_num_value_heads": ("linear attention", "linear_conv_kernel_dim", _delta_rule),
    # Kimi Delta Attention (arXiv:2510.26692)
    "linear_num_heads": ("linear attention", "linear_conv_kernel_dim", _of_heads),
    "short_conv_kernel_size": ("linear attention", "linear_conv_kernel_dim", _of_heads),
    "dt_rank": ("Mamba", "conv_kernel", _mamba),  # arXiv:2312.00752
    "mamba_heads": ("Mamba-2", "conv_kernel", _mamba2),  # arXiv:2405.21060
    "state_size": ("Mamba", "conv_kernel", _mamba),
}
"""By a field that only layers of one kind have: what they are, the field of their convolution's
kernel, and how many columns it takes and how many numbers a state has.
"""
