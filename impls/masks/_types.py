"""Types for annotations, so that no file of this folder imports torch or the problem."""

from typing import TYPE_CHECKING, Any

__all__ = ["Problem", "Tensor"]

if TYPE_CHECKING:
    from torch import Tensor

    from ..problem import Problem
else:
    Problem = Tensor = Any
