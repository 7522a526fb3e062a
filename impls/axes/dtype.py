"""The number format of inputs, weights and the output."""

from .axis import Axis

DTYPE = Axis(
    "Number format: fp32, bf16 or fp16.",
    option="fp32, bf16 or fp16, also float32, bfloat16, float16 (default: fp32).",
    given="fp32",
    scenario_wide=True,
    part=lambda p: p.dtype,
    in_rows="`fp32`, `bf16`, `fp16`",
)
