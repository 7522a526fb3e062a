"""The axes of a problem: one table for scenario fields, their short names and the CLI's options.

It imports neither pydantic nor torch, so `attnbench --help` stays fast.
"""

from dataclasses import dataclass
from typing import Any, Literal

from ...impls.problem import Dtype, Mask, Passes, Scope

Align = Literal["top_left", "bottom_right"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis; the table gives its name.

    `type`: of one value; int is a size from 1 on. `option`: help of its command-line option; an
    axis without one is set in a scenario file only. `default`: the value if nothing sets it.
    `scenario_wide`: whether a scenario may also set it at its top level, for the whole grid.
    """

    type: Any
    meaning: str
    alias: str = ""
    option: str = ""
    default: Any = None
    scenario_wide: bool = False

    @property
    def description(self) -> str:
        return f"{self.meaning} Also written {self.alias}." if self.alias else self.meaning


AXES: dict[str, Axis] = {
    "batch": Axis(
        type=int,
        meaning="Sequences per batch; 1 if not given.",
        alias="B",
        option="Batch sizes, as 1,8; 1 if not given.",
        default=1,
    ),
    "seq_len": Axis(
        type=int,
        meaning="Length of the query sequence in tokens; 1k = 1024, 1m = 1024 * 1024.",
        alias="N",
        option="Sequence lengths, as 512,1k,8k (1k = 1024).",
    ),
    "kv_seq_len": Axis(
        type=int,
        meaning="Length of the key and value sequence, if it differs from seq_len.",
        option="Key and value lengths, if they differ from the query's.",
    ),
    "d_model": Axis(
        type=int,
        meaning="Width of the model: the last dimension of the layer's input.",
        option="Model widths.",
    ),
    "heads": Axis(
        type=int,
        meaning="Number of query heads.",
        alias="h",
        option="Numbers of query heads.",
    ),
    "kv_heads": Axis(
        type=int,
        meaning=(
            "Number of key and value heads, if it differs from heads (grouped-query attention);"
            " heads must be a multiple of it."
        ),
        option="Numbers of key and value heads, if they differ from --heads.",
    ),
    "d_k": Axis(
        type=int,
        meaning="Width of one head's queries and keys; d_model / heads if not given.",
    ),
    "d_v": Axis(
        type=int,
        meaning="Width of one head's values; d_model / heads if not given.",
    ),
    "dtype": Axis(
        type=Dtype,
        meaning="Number format: fp32, bf16 or fp16.",
        option="fp32, bf16, fp16 (also float32, bfloat16, float16); fp32 if not given.",
        default="fp32",
        scenario_wide=True,
    ),
    "causal": Axis(
        type=bool,
        meaning="Whether a token attends only to itself and to earlier tokens.",
        option="Causal mask: hide later tokens.",
        default=False,
        scenario_wide=True,
    ),
    "causal_align": Axis(
        type=Align,
        meaning=(
            "Corner at which the causal triangle starts; required if kv_seq_len differs from"
            " seq_len."
        ),
        scenario_wide=True,
    ),
    "mask": Axis(
        type=Mask,
        meaning=("Mask in addition to causal: none, padding, random, local, strided or blocks."),
        option="none, padding, random, local, strided, blocks; none if not given.",
        default="none",
        scenario_wide=True,
    ),
    "window": Axis(
        type=int,
        meaning=(
            "Size of a mask that has one: keys to either side (local), the stride (strided), blocks"
            " of 64 keys per query block (blocks)."
        ),
        option="Sizes of the masks that have one: local, strided, blocks.",
        scenario_wide=True,
    ),
    "passes": Axis(
        type=Passes,
        meaning=(
            "What is computed: forward, backward (alone, after an untimed forward pass) or"
            " forward+backward."
        ),
        option="forward, backward, forward+backward; forward if not given.",
        default="forward",
        scenario_wide=True,
    ),
    "scope": Axis(
        type=Scope,
        meaning=(
            "core starts from q, k and v per head; layer adds the input projections and the output"
            " projection; block is a pre-norm transformer block around the layer."
        ),
        option="core (from q, k, v), layer (with projections) or block; core if not given.",
        default="core",
        scenario_wide=True,
    ),
}
ALIASES = {axis.alias: name for name, axis in AXES.items() if axis.alias}
VALUE_ALIASES = {
    "dtype": {
        "float32": "fp32",
        "float": "fp32",
        "bfloat16": "bf16",
        "float16": "fp16",
        "half": "fp16",
    },
    "device": {"gpu": "cuda"},
}
"""Other names of values, by axis or field, as torch and other programs have them."""
