"""What a backend returns, beyond its values: a tensor of its own, the same result for every call.

The correctness check compares a call or two with the exact result. A fingerprint, some hundred
elements drawn at random, ties every other call to those: timed calls are looked at after their time
was taken, in their raw memory.
"""

from collections import deque
from collections.abc import Sequence
from math import sqrt
from time import perf_counter
from typing import cast

import numpy as np
import torch
from torch import Tensor

from ...impls.backend import TORCH_DTYPE
from ...impls.problem import Problem
from .input_values import ColumnSigns
from .prepared_call import Tensors
from .raw_memory import Array, Places, elements

POSITIONS = 512  # of each tensor
LOOK_SHARE = 0.01  # of the time of the calls, beyond the one look that every block gets
FIRST_LOOKS = 32  # of a warm-up, where every call counts, however short
MOST_EARLIER = 8  # results of new values, to recognise those that come again
FROM_MEMORY = "its result did not follow new values of its inputs: it answers from memory"
STALE = (
    "a timed call gave the result of earlier inputs: it answers from memory, not from the values"
    " that the inputs have"
)
SAME_RATIO = {"fp32": 2.0**-16, "bf16": 2.0**-6, "fp16": 2.0**-9}
"""How far, in relative L2, two calls with the same values may be apart: sums in another order."""


def improper(
    problem: Problem, output: object, gradients: Sequence[object], tensors: Tensors
) -> str:
    """What is wrong with the objects that a call returned; "" if they are plain tensors.

    An output of None is left out. Wanted: exactly torch.Tensor, of the problem's dtype and device,
    in storage of its own.
    """
    shared = {tensor.untyped_storage().data_ptr() for tensor in tensors.inputs}
    weights = tensors.weights.tensors() if tensors.weights else ()
    shared |= {tensor.untyped_storage().data_ptr() for tensor in weights}
    device, dtype = tensors.inputs.query.device, TORCH_DTYPE[problem.dtype]
    for index, tensor in enumerate((output, *gradients)):
        if index == 0 and tensor is None:
            continue
        what = "a gradient" if index else "the output"
        if type(tensor) is not Tensor:
            kind = type(tensor).__name__
            return f"{what} is of type {kind}; wanted a torch.Tensor with storage of its own"
        if tensor.device != device or tensor.layout != torch.strided:
            found = f"on {tensor.device} in layout {tensor.layout}"
            return f"{what} is {found}; wanted it on {device}, strided"
        if not index and tensor.dtype != dtype:
            return f"{what} is of {tensor.dtype}; wanted {dtype}"
        storage = tensor.untyped_storage()
        if storage.nbytes() < tensor.numel() * tensor.element_size() and not index:
            return f"{what} repeats {storage.nbytes()} bytes; wanted storage of its own"
        if tensor.numel() and not index and storage.data_ptr() in shared:
            return f"{what} is an input's own memory; wanted storage of its own"
    return ""


SAME_MEMORY = "returns the same memory in every call; wanted storage of its own"


def share_storage(one: object, other: object) -> bool:
    """Whether two results, outputs or tuples of gradients, have a tensor's memory in common."""
    pointers = [
        {tensor.untyped_storage().data_ptr() for tensor in _tensors(result) if tensor.numel()}
        for result in (one, other)
    ]
    return bool(pointers[0] & pointers[1])


def _tensors(result: object) -> Sequence[Tensor]:
    return [result] if isinstance(result, Tensor) else cast(Sequence[Tensor], result)


class Fingerprint:
    """Elements of a result at fixed random positions, and what they must be.

    `expected`: by the sign of the inputs (input_values.InputValues.flipped). `repeats_exactly`:
    whether calls with equal inputs, one looked at after the other, gave equal bits at these places;
    None if there were none.
    """

    def __init__(self, problem: Problem, seed: int, *, is_exact: bool = True) -> None:
        """`is_exact`: results follow the signs of columns where those of exact attention do."""
        self.is_exact = is_exact
        self.most_ratio = SAME_RATIO[problem.dtype]
        self._random = np.random.default_rng(seed)
        self._positions: list[Places] = []
        self.expected: dict[bool, Array] = {}
        self.complaint = ""
        self.repeats_exactly: bool | None = None
        self._last: tuple[bool, ColumnSigns | None, Array] | None = None
        self._new: tuple[ColumnSigns, Array] | None = None  # values without a known result
        self._earlier: deque[Array] = deque(maxlen=MOST_EARLIER)  # results of such
        self._held: object | None = None
        self._looks = 0
        self._look_s = 0.0
        self._since_s = perf_counter()

    def take(self, result: object) -> Array:
        """The elements, float64. `result`: an output, or a tuple of gradients."""
        tensors = _tensors(result)
        if not self._positions:
            self._positions = [self._drawn(tensor) for tensor in tensors]
        pairs = zip(tensors, self._positions, strict=True)
        return np.concatenate([elements(tensor, places) for tensor, places in pairs])

    def hold(self, result: object) -> None:
        """Keep a result until the next one is looked at, which may not lie in the same memory."""
        self._held = result

    def look(
        self, result: object, flipped: bool, columns: ColumnSigns | None = None, *, must: bool
    ) -> None:
        """Compare a call's result with what is expected of the inputs' signs, if it `must` be or
        time allows. Where that is not known: with that of the first call with the same `columns`.
        """
        if self._held is not None:
            self.complaint = SAME_MEMORY if share_storage(result, self._held) else self.complaint
            self._held = None
        start = perf_counter()
        spent_s = start - self._since_s
        first = self._looks < FIRST_LOOKS
        if not (must or first or self._look_s <= LOOK_SHARE * spent_s):
            return
        if not self.complaint:
            with np.errstate(all="ignore"):  # infinity and NaN are other results, without a word
                self.complaint = self._compare(self.take(result), flipped, columns)
        self._looks += 1
        self._look_s += perf_counter() - start

    def _factors(self, columns: ColumnSigns | None) -> Array | float | None:
        """Of the elements, by the signs of columns; None if unknown."""
        if columns is None:
            return 1.0
        if columns.results is None:
            return None
        pairs = zip(columns.results, self._positions, strict=True)
        # the remainder is 0 for rows, which have one sign, and the place itself for other axes
        taken = [
            signs[tuple(axis % size for axis, size in zip(places, signs.shape, strict=True))]
            for signs, places in pairs
        ]
        return np.concatenate(taken)

    def _compare(self, found: Array, flipped: bool, columns: ColumnSigns | None) -> str:
        if self._last and self._last[0] == flipped and self._last[1] is columns:
            same = found.tobytes() == self._last[2].tobytes()
            self.repeats_exactly = same and self.repeats_exactly is not False
        self._last = flipped, columns, found
        factors = self._factors(columns)
        expected = None if factors is None else self.expected[flipped] * factors
        if expected is not None and _near(found, expected, self.most_ratio):
            return ""
        if columns is not None and not (self.is_exact and columns.results):
            return self._compare_new(found, columns)
        assert expected is not None
        # Earlier inputs had other signs, of which some may be those of columns.
        earlier = [np.abs(one) for one in self.expected.values()]
        if any(_near(np.abs(found), one, self.most_ratio) for one in earlier):
            return STALE
        return self._other_than("the call that was checked", found, expected)

    def _compare_new(self, found: Array, columns: ColumnSigns) -> str:
        """Of values for which nobody knows the result: it is none of those of other values, and
        stays as it is.
        """
        if self._new and self._new[0] is columns:
            if _near(found, self._new[1], self.most_ratio):
                return ""
            return self._other_than("an earlier one with the same values", found, self._new[1])
        if not np.isfinite(found).all():
            return "a timed call gave NaN or infinity"
        # To the bit: results of other values may be close, as those over many keys are.
        earlier = (*self.expected.values(), *self._earlier)
        if found.any() and any(np.array_equal(found, one) for one in earlier):
            return STALE
        self._new = columns, found
        self._earlier.append(found)
        return ""

    def _other_than(self, which: str, found: Array, expected: Array) -> str:
        distance = _norm(found - expected) / (_norm(expected) or 1.0)
        return (
            f"a timed call gave another result than {which} (relative L2 {distance:.2g} at"
            f" {len(found)} elements; up to {self.most_ratio:.2g} passes)"
        )

    def follows_inputs(self) -> bool:
        """Whether the results of the two signs differ, as those of attention do."""
        if len(self.expected) < 2:
            return True
        one, other = self.expected[False], self.expected[True]
        return not one.any() or not np.array_equal(one, other)

    def _drawn(self, tensor: Tensor) -> Places:
        places = self._random.integers(max(1, tensor.numel()), size=POSITIONS)
        return np.unravel_index(places, tuple(tensor.shape))


def _norm(numbers: Array) -> float:
    return sqrt(float(np.square(numbers).sum()))


def _near(found: Array, expected: Array, most_ratio: float) -> bool:
    return _norm(found - expected) <= most_ratio * _norm(expected)  # False for NaN
