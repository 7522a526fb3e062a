"""Attention backends under one interface: `names()` lists them, `load(name)` imports one. Importing
this package imports no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .discovery.registry import exactness, from_outside, ignored, load, missing, names, needs
from .discovery.source import BadBackend
from .problem import Problem

if TYPE_CHECKING:
    from .backend import Backend, Call, Inputs, Weights, make_inputs
    from .layer import make_weights
    from .module import MultiHeadAttention

__all__ = [
    "Backend",
    "BadBackend",
    "Call",
    "Inputs",
    "MultiHeadAttention",
    "Problem",
    "Weights",
    "exactness",
    "from_outside",
    "ignored",
    "load",
    "make_inputs",
    "make_weights",
    "missing",
    "names",
    "needs",
]

_NEED_TORCH = {
    "Backend": ".backend",
    "Call": ".backend",
    "Inputs": ".backend",
    "Weights": ".backend",
    "make_inputs": ".backend",
    "MultiHeadAttention": ".module",
    "make_weights": ".layer",
}


def __getattr__(name: str) -> Any:
    """The names that need torch are imported when first asked for (PEP 562)."""
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_NEED_TORCH[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
