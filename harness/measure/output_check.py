"""What a backend returns, beyond its values: tensors of its own, complete when the call returns."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor

from ...impls.backend import TORCH_DTYPE
from ...impls.problem import Problem
from .prepared_call import Tensors

POSITIONS = 512  # of each tensor, for a look
DIGEST_BYTES = 16
WRITES = "writes into its inputs ({}), which it shares with other backends"
CHANGED = (
    "its result changed after the call returned: a thread still writes it, or its memory is used"
    " again"
)


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


def tensors_of(result: object) -> Sequence[Any]:
    """Of an output, or of gradients."""
    return result if isinstance(result, tuple | list) else [result]


class FirstLook:
    """Some elements of a result as they were at once after the call; `changed` compares later."""

    def __init__(self, result: object) -> None:
        self._tensors = [one for one in tensors_of(result) if type(one) is Tensor and one.numel()]
        self._places = [
            tuple(torch.randint(size, (POSITIONS,), device=one.device) for size in one.shape)
            for one in self._tensors
        ]
        self._found = self._elements()

    def _elements(self) -> list[Tensor]:
        pairs = zip(self._tensors, self._places, strict=True)
        return [tensor.detach()[places] for tensor, places in pairs]

    @property
    def changed(self) -> bool:
        pairs = zip(self._elements(), self._found, strict=True)
        return not all(torch.equal(now, then) or now.isnan().any() for now, then in pairs)


def digest(result: object) -> str:
    """Of some elements of each tensor, at the same places in every process, in all their bits."""
    found = blake2b(digest_size=DIGEST_BYTES)
    for tensor in tensors_of(result):
        flat = tensor.detach().flatten()
        found.update(flat[:: max(1, len(flat) >> 16)].cpu().contiguous().view(torch.uint8).numpy())
    return found.hexdigest()
