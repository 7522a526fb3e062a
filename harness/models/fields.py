"""The fields of a configuration, each checked when it is read, with messages that name it."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from ..files.errors import BadInput, shown

LARGEST = 1 << 40
# What may say something about attention: an unknown field of such a name is refused.
ABOUT_ATTENTION = re.compile(
    r"attn|attention|head|window|layer_type|sink|chunk|lora_rank|softcap|(^|_)kv(_|$)|multi_query|alibi|per_layer_conf"
)
HARMLESS = {
    # how it is computed or trained, not what
    *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    *("attention_dropout", "attn_pdrop", "attention_probs_dropout_prob", "attention_bias"),
    *("encoder_layerdrop", "activation_dropout", "output_attentions"),
    # scales and norms before the scores, and the model's outputs
    *("query_pre_attn_scalar", "scale_attn_weights", "scale_attn_by_inverse_layer_idx"),
    *("reorder_and_upcast_attn", "attention_multiplier", "use_qk_norm", "qk_layernorm"),
    *("attn_scale", "attn_temperature_tuning", "_sliding_window_pattern"),
    *("final_logit_softcapping", "lm_head_bias", "prune_heads", "pruned_heads"),
    *("chunk_size_feed_forward", "classifier_proj_size"),
}
WEIGHT_DTYPES = ("float32", "float16", "bfloat16")


class Fields:
    """One JSON object of a configuration. Every method raises BadInput with `place: field: ...`."""

    def __init__(self, data: Mapping[str, Any], place: str) -> None:
        self.data, self.place = data, place
        self.read: set[str] = set()

    def bad(self, name: str, found: str, wanted: str) -> BadInput:
        return BadInput(f"{self.place}: {name}: {found}; wanted {wanted}")

    def get(self, name: str) -> Any:
        """The value as it stands; None if it is not given."""
        self.read.add(name)
        return self.data.get(name)

    def size(self, name: str, default: int | None = None) -> int:
        """A whole number from 1 on; `default` if it is not given or null."""
        value = self.get(name)
        if value is None:
            if default is None:
                raise self.bad(name, "not given", "a whole number from 1 on")
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
            raise self.bad(name, shown(value), "a whole number from 1 on")
        return value

    def count(self, name: str, default: int) -> int:
        """A whole number from 0 on."""
        return 0 if self.get(name) == 0 else self.size(name, default)

    def is_set(self, name: str, default: bool = False) -> bool:
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.bad(name, shown(value), "true or false")
        return value

    def number(self, name: str, default: float | None) -> float | None:
        """A positive number, or null; `default` if it is not given."""
        if name not in self.data:
            self.read.add(name)
            return default
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise self.bad(name, shown(value), "a positive number or null")
        return float(value)

    def window(self, name: str, default: int | None) -> int | None:
        """A length in tokens; None where null stands for no window."""
        if name not in self.data:
            self.read.add(name)
            return default
        return None if self.get(name) is None else self.size(name)

    def words(self, name: str, length: int) -> list[str] | None:
        """A list of so many words; None if it is not given."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self.bad(name, shown(value), "a list of names")
        if len(value) != length:
            raise self.bad(name, f"{len(value)} entries", f"one for each of {length} layers")
        return value

    def inner(self, name: str) -> "Fields":
        """The object of that name."""
        value = self.get(name)
        if not isinstance(value, dict):
            raise self.bad(name, "not given" if value is None else shown(value), "an object")
        return Fields(value, f"{self.place}: {name}")

    def dtype(self) -> str | None:
        """The dtype of the weights, as torch names it; None if it is not given."""
        value = self.get("dtype") or self.get("torch_dtype")
        if value is None:
            return None
        if not isinstance(value, str) or not value.isprintable() or len(value) > 40:
            raise self.bad("dtype", shown(value), f"a name such as {', '.join(WEIGHT_DTYPES)}")
        return value.removeprefix("torch.")

    def refuse_unknown(self) -> None:
        """Refuses what may change attention and was not read. Raises BadInput."""
        if unknown := unknown_names(self.data, self.read):
            raise BadInput(
                f"{self.place}: {unknown}: not known for this model_type, and may change its"
                " attention; wanted fields that are known; install transformers, which knows more:"
                " pip install 'attnbench[hf]'"
            )


def unknown_names(data: Mapping[str, Any], read: Collection[str]) -> str:
    """Fields that may change attention and were not read, for a message; "" if there are none."""
    unknown = [
        name
        for name, value in data.items()
        if name not in read
        and name not in HARMLESS
        and not (value is None or value is False or value in ([], {}, 0))
        and ABOUT_ATTENTION.search(name)
    ]
    return ", ".join(shown(name) for name in sorted(unknown)[:5])
