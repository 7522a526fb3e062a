"""A second prediction of peak bytes: the backend's code on device "meta", tensors without memory.

Independent of the formulas: tensors are followed from creation to deletion. It holds for backends
whose operations allocate their results and nothing else (PLAIN_OPERATIONS in impls/backend.py),
because it cannot see into an operation. Nor does it see numbers that autograd keeps as tensors of 8
bytes, such as the factor 1/sqrt(d_k), one for each head in a loop.
"""

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ...impls import input_order
from ...impls.backend import Backend
from ...impls.peak_formulas.sizes import allocates_results_only
from ...impls.problem import Problem
from .prepared_call import make_gradient, make_tensors, prepare_call

META = torch.device("meta")
MAX_OPERATIONS = 10_000  # of one case: a third of a second
OWNED_USES, OWNED_STORAGE_USES = 4, 2
"""Reference counts, seen by a dispatch mode, of a gradient that only the autograd engine holds."""


def meta_peak_bytes(
    problem: Problem, backend: Backend, device: torch.device
) -> tuple[int | None, str]:
    """Extra bytes above inputs and weights at the highest point, and "".

    None and the reason if there is no such number for `device`.
    """
    if not backend.plain_operations:
        return None, f"{backend.name} is not made of plain operations only"
    if not allocates_results_only(problem, device.type):
        return None, f"{problem.dtype} operations on {device.type} use buffers of their own"
    try:
        return _followed(problem, backend), ""
    except Exception as error:  # noqa: BLE001 - a backend may raise anything; the case goes on
        text = str(error).strip().split("\n")[0] or type(error).__name__
        return None, f"not on the meta device: {text[:300]}"


def _followed(problem: Problem, backend: Backend) -> int:
    order = input_order(backend.name, problem)
    tensors = make_tensors(problem, META, 0, order)
    gradient = make_gradient(problem, META, 0, order)
    prepared = prepare_call(problem, backend, tensors, gradient)
    before = [*prepared.targets, *([] if gradient is None else [gradient])]
    with prepared.in_force(), Followed(before) as followed:
        ready = prepared.setup()
        followed.highest = followed.alive  # what `setup` leaves counts, its own peak does not
        result = prepared.run(ready)
    del result, ready
    return int(followed.highest)


class Followed(TorchDispatchMode):
    """Counts the bytes of every living storage that was created while this is in force."""

    def __init__(self, before: list[Tensor]) -> None:
        """`before`: tensors that existed before."""
        super().__init__()  # type: ignore[no-untyped-call] # torch's
        self.alive: int = 0
        self.highest: int = 0
        self.operations = 0
        self.bytes_of = {tensor.untyped_storage()._cdata: 0 for tensor in before}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """torch would import its compiler to skip this class; plain operations are not compiled."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        self.operations += 1
        if self.operations > MAX_OPERATIONS:
            raise ValueError(f"more than {MAX_OPERATIONS} operations")
        reused = _reused(args) if func is torch.ops.aten.add.Tensor else None
        given = _tensors((args, kwargs))
        run = WITHOUT_COMPILER.get(func, func)
        result = run(*args, **(kwargs or {}))
        if reused is not None:
            self._take_over(reused, result)
        for tensor in given:
            self._see(tensor, made=False)  # made before, in `prepare`
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
        """Count `new` in the place of `old`, whose memory it would have."""
        key, storage = old.untyped_storage()._cdata, new.untyped_storage()
        self.bytes_of[storage._cdata] = self.bytes_of[key]
        self.bytes_of[key] = 0
        weakref.finalize(storage, self._gone, storage._cdata)


def _stack(tensors: list[Tensor], dim: int = 0) -> Tensor:
    shape = list(tensors[0].shape)
    shape.insert(dim % (len(shape) + 1), len(tensors))
    return torch.empty(shape, dtype=tensors[0].dtype, device=META)


def _cat(tensors: list[Tensor], dim: int = 0) -> Tensor:
    shape = list(tensors[0].shape)
    shape[dim] = sum(tensor.shape[dim] for tensor in tensors)
    return torch.empty(shape, dtype=tensors[0].dtype, device=META)


def _bmm(one: Tensor, other: Tensor) -> Tensor:
    if one.shape[::2] != (other.shape[0], other.shape[1]):
        raise ValueError(f"no product of {list(one.shape)} and {list(other.shape)}")
    shape = (*one.shape[:2], other.shape[2])
    return torch.empty(shape, dtype=one.dtype, device=META)


def _softmax(scores: Tensor, dim: int, half_to_float: bool) -> Tensor:
    dtype = torch.float32 if half_to_float else scores.dtype
    return torch.empty(scores.shape, dtype=dtype, device=META)


def _addmm(bias: Tensor, one: Tensor, other: Tensor) -> Tensor:
    if one.shape[1] != other.shape[0]:
        raise ValueError(f"no product of {list(one.shape)} and {list(other.shape)}")
    return torch.empty((one.shape[0], other.shape[1]), dtype=bias.dtype, device=META)


WITHOUT_COMPILER = {
    torch.ops.aten.stack.default: _stack,
    torch.ops.aten.cat.default: _cat,
    torch.ops.aten.bmm.default: _bmm,
    torch.ops.aten._softmax.default: _softmax,
    torch.ops.aten.addmm.default: _addmm,
}
"""On this device torch's own import its compiler: up to a second of each worker. Masks do too."""


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def _uses(tensor: Tensor) -> int:
    return int(tensor._use_count())  # type: ignore[attr-defined] # missing in torch's stubs


def _reused(args: tuple[Any, ...]) -> Tensor | None:
    """The gradient that the autograd engine would add into, without a dispatch mode.

    The engine sums the gradients of a tensor with several uses in place, into one that nobody else
    holds; under a dispatch mode it makes a new one (torch/csrc/autograd/input_buffer.cpp), which
    would be one gradient too many.
    """
    if torch.is_grad_enabled() or torch._C._current_autograd_node() is None:
        return None  # not the engine's own sum
    for tensor in _tensors(args):
        storage = tensor.untyped_storage()
        uses = _uses(tensor), torch._C._storage_Use_Count(storage._cdata)
        if uses == (OWNED_USES, OWNED_STORAGE_USES) and tensor.nbytes == storage.nbytes():
            return tensor
    return None
