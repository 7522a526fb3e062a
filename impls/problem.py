"""What to compute, not how: the shape of one attention problem, and its axes."""

from dataclasses import dataclass
from typing import Protocol

from .axes import AXES, OPT_IN
from .axes.axis import Axis
from .axes.lengths import packed
from .axes.mask import ALL_MASKS, windowed
from .problem_fields import ITEM_BYTES, Dtype, ProblemFields

__all__ = ["ALL_MASKS", "AXES", "ITEM_BYTES", "OPT_IN", "Device", "Dtype", "Problem", "windowed"]


class Device(Protocol):
    """A torch.device, for files that do not import torch."""

    @property
    def type(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(ProblemFields):
    """The shape of one multi-head attention. Sizes left at 0 take their default when constructed.

    `scope` "core" starts from q, k and v per head; "layer" starts from the layer's inputs and adds
    the projections and W_O; "block" is a pre-norm transformer block around the layer, with a feed-
    forward layer of width FEED_FORWARD_FACTOR * d_model. `causal_align` is the corner from which
    the causal triangle starts; it must be given if kv_seq_len != seq_len. `mask` (masks/, a file
    each) applies in addition to `causal`. `window` is the mask's size, 0 for masks without one.
    Nothing assumes heads * d_k == d_model. Raises ValueError for values that describe no problem.

    `lengths` (axes/lengths.py) makes a ragged batch of one row: sequences of unequal length lie one
    after the other, without padding, and a query sees keys of its own sequence only, up to its own
    position if `causal`. So the inputs are tokens and nothing else: what kernels for unequal
    lengths take, and what several documents in one row of a training batch are. A backend that pads
    makes the padding itself. seq_len and kv_seq_len are the sums and need not be given.
    """

    def __post_init__(self) -> None:
        if self.lengths:
            for name, value in packed(self).items():
                object.__setattr__(self, name, value)
        for name, axis in AXES.items():
            axis.check_value(name, getattr(self, name))
        for axis in AXES.values():
            if axis.check:
                axis.check(self)
        for name, axis in AXES.items():
            if axis.filled:
                object.__setattr__(self, name, axis.filled(self))

    @property
    def opted_in(self) -> dict[str, Axis]:
        """Axes whose value here only some backends compute."""
        return {name: AXES[name] for name, one in OPT_IN.items() if getattr(self, name) != one}

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """The shapes of inputs that axes add, by name."""
        of_axes = (axis.tensors(self) for axis in self.opted_in.values())
        return {name: shape for shapes in of_axes for name, shape in shapes.items()}
