"""Attention backends behind one interface: `names()` lists them, `load(name)` imports one.

Importing this package does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .discovery.registry import (
    exactness,
    find,
    ignored,
    input_order,
    is_ours,
    missing,
    names,
    third_party,
)
from .discovery.source import BadBackend
from .problem import Problem

if TYPE_CHECKING:
    from .backend import Call, Inputs, Weights
    from .discovery.loading import Backend, load
    from .layer import make_weights
    from .modules.block import Block, Decoder, generate
    from .modules.multi_head_attention import MultiHeadAttention
    from .shared.inputs import make_inputs

__all__ = [
    "Backend",
    "BadBackend",
    "Block",
    "Call",
    "Decoder",
    "Inputs",
    "MultiHeadAttention",
    "Problem",
    "Weights",
    "exactness",
    "find",
    "generate",
    "ignored",
    "input_order",
    "is_ours",
    "load",
    "make_inputs",
    "make_weights",
    "missing",
    "names",
    "third_party",
]

_NEED_TORCH = {
    **dict.fromkeys(("Call", "Inputs", "Weights"), ".backend"),
    **dict.fromkeys(("Block", "Decoder", "generate"), ".modules.block"),
    **dict.fromkeys(("Backend", "load"), ".discovery.loading"),
    "MultiHeadAttention": ".modules.multi_head_attention",
    "make_inputs": ".shared.inputs",
    "make_weights": ".layer",
}


def __getattr__(name: str) -> Any:
    """Names that need torch are imported on first use (PEP 562)."""
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_NEED_TORCH[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
