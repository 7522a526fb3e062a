"""Other names of the axes of a problem, which impls/problem.py declares, and of their values.

It imports neither pydantic nor torch, so `attnbench --help` stays fast.
"""

from ...impls.problem import AXES

__all__ = ["ALIASES", "AXES", "VALUE_ALIASES"]

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
