"""Types for annotations, so that no file of this folder imports torch."""

from typing import TYPE_CHECKING, Any

from ..problem_fields import ProblemFields as Problem

__all__ = ["Problem", "Tensor"]

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any
