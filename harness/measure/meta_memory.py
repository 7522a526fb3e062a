"""A second prediction of peak bytes: the backend's own code on device "meta", where tensors have
shapes and no memory.

Independent of the formulas: nobody works anything out, the tensors are followed from birth to
death. It holds for backends whose operations allocate their results and nothing else
(PLAIN_OPERATIONS in impls/backend.py), because it cannot see into an operation. Nor does it see
numbers that autograd keeps as tensors of 8 bytes, such as the factor 1/sqrt(d_k), one for each head
in a loop.
"""

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ...impls.backend import TORCH_DTYPE, Backend
from ...impls.peak_formulas.sizes import allocates_results_only
from ...impls.problem import Problem
from .correctness import output_shape
from .prepared_call import make_subject, make_tensors

META = torch.device("meta")
MOST_OPERATIONS = 10_000  # of one case: a third of a second
OWNED_USES, OWNED_STORAGE_USES = 4, 2
"""Reference counts, as a dispatch mode sees them, of a gradient that only the autograd engine still
holds.
"""


def meta_peak_bytes(
    problem: Problem, backend: Backend, device: torch.device
) -> tuple[int | None, str]:
    """Extra bytes above inputs and weights at the highest point, and ""; or None, and why there is
    no such number for `device`.
    """
    if not backend.plain_operations:
        return None, f"{backend.name} is not made of plain operations only"
    if not allocates_results_only(problem, device.type):
        return None, f"{problem.dtype} operations on {device.type} use buffers of their own"
    try:
        return _followed(problem, backend), ""
    except Exception as error:  # noqa: BLE001 - a backend may raise anything, and a missing second opinion ends no case
        text = str(error).strip().split("\n")[0] or type(error).__name__
        return None, f"not on the meta device: {text[:300]}"


def _followed(problem: Problem, backend: Backend) -> int:
    tensors = make_tensors(problem, META, 0)
    gradient = (
        torch.empty(output_shape(problem), dtype=TORCH_DTYPE[problem.dtype], device=META)
        if problem.backward
        else None
    )
    subject = make_subject(problem, backend, tensors, gradient)
    given = [*subject.targets, *([] if gradient is None else [gradient])]
    with subject.in_force(), Followed(given) as followed:
        ready = subject.setup()
        followed.highest = (
            followed.alive
        )  # as when it is measured: what `setup` leaves counts, its own peak does not
        result = subject.run(ready)
    del result, ready
    return int(followed.highest)


class Followed(TorchDispatchMode):
    """Counts the bytes of every storage that appears while this is in force, those of `given`
    apart, until it is gone.
    """

    def __init__(self, given: list[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's
        self.alive: int = 0
        self.highest: int = 0
        self.operations = 0
        self.bytes_of = {tensor.untyped_storage()._cdata: 0 for tensor in given}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """torch would import its compiler to keep it off this class; plain operations are not
        compiled.
        """
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        self.operations += 1
        if self.operations > MOST_OPERATIONS:
            raise ValueError(f"more than {MOST_OPERATIONS} operations")
        reused = _reused(args) if func is torch.ops.aten.add.Tensor else None
        given = _tensors((args, kwargs))
        result = (
            _stack(*args, **(kwargs or {}))
            if func is torch.ops.aten.stack.default
            else func(*args, **(kwargs or {}))
        )
        if reused is not None:
            self._take_over(reused, result)
        for tensor in given:
            self._see(tensor, made=False)  # before, in `prepare`
        for tensor in _tensors(result):
            self._see(tensor, made=True)
        return result

    def _see(self, tensor: Tensor, *, made: bool) -> None:
        storage = tensor.untyped_storage()
        if storage._cdata not in self.bytes_of:
            self.bytes_of[storage._cdata] = storage.nbytes() if made else 0
            self.alive += self.bytes_of[storage._cdata]
            self.highest = max(self.highest, self.alive)
            weakref.finalize(storage, self._gone, storage._cdata)

    def _gone(self, key: int) -> None:
        self.alive -= self.bytes_of.pop(key)

    def _take_over(self, old: Tensor, new: Tensor) -> None:
        """`new` stands where `old` stood: it is counted in its place."""
        key, storage = old.untyped_storage()._cdata, new.untyped_storage()
        self.bytes_of[storage._cdata] = self.bytes_of[key]
        self.bytes_of[key] = 0
        weakref.finalize(storage, self._gone, storage._cdata)


def _stack(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """As torch.stack, which imports torch's compiler on this device."""
    shape = list(tensors[0].shape)
    shape.insert(dim % (len(shape) + 1), len(tensors))
    return torch.empty(shape, dtype=tensors[0].dtype, device=META)


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def _uses(tensor: Tensor) -> int:
    return int(tensor._use_count())  # type: ignore[attr-defined] # missing in torch's stubs


def _reused(args: tuple[Any, ...]) -> Tensor | None:
    """The gradient that the autograd engine would add the other one into, were it not for the
    dispatch mode.

    It sums the gradients of a tensor with several uses in place, into one that nobody else holds;
    but under a dispatch mode it makes a new one (torch/csrc/autograd/input_buffer.cpp), which would
    be one gradient too much.
    """
    if (
        torch.is_grad_enabled() or torch._C._current_autograd_node() is None
    ):  # not the engine's own sum
        return None
    for tensor in _tensors(args):
        storage = tensor.untyped_storage()
        owned = (
            _uses(tensor) == OWNED_USES
            and torch._C._storage_Use_Count(storage._cdata) == OWNED_STORAGE_USES
        )
        if owned and tensor.nbytes == storage.nbytes():
            return tensor
    return None
