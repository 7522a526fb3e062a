"""Tensors on the fake GPU: they lie in the host's memory, and say that they are on a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .autograd import note_streams, refuse_other_streams
from .gpu import FakeGpu

CUDA = torch.device("cuda", 0)

# Their results are the host's: it waits for them.
WAITED_FOR = {"aten::_local_scalar_dense", "aten::equal", "aten::nonzero", "aten::is_nonzero"}
RANDOM = {"aten::rand", "aten::randn", "aten::normal_", "aten::uniform_", "aten::bernoulli_"}
PRODUCTS = {"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"}  # by cuBLAS
# May have arguments on both sides.
MIXED = {"copy_", "to", "__getitem__", "__setitem__", "index", "cpu", "cuda", "set_", "type"}


class Placement:
    """Where results of the operation go that the host has called: to a device, or as its inputs."""

    def __init__(self) -> None:
        self.forced: str | None = None

    @contextmanager
    def on(self, kind: str | None) -> Iterator[None]:
        before, self.forced = self.forced, kind
        try:
            yield
        finally:
            self.forced = before


class OnGpu(TorchDispatchMode):
    """Counts the memory of results, and launches every operation that is no view."""

    def __init__(self, gpu: FakeGpu, placement: Placement) -> None:
        super().__init__()
        self.gpu, self.placement = gpu, placement
        self.workspaces: dict[int, Tensor] = {}  # by stream

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        with torch._C.DisableTorchFunction():
            return self._run(func, args, kwargs)

    def _run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inputs = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        has = self.gpu.memory.has
        reads_gpu = any(map(has, inputs))
        to_gpu = self.placement.forced == "cuda" or (reads_gpu and self.placement.forced != "cpu")
        if not (reads_gpu or to_gpu):
            return func(*args, **kwargs)
        name = func.name().split(".")[0]
        waited_for = name in WAITED_FOR or (reads_gpu and self.placement.forced == "cpu")
        if waited_for:
            self.gpu.synchronize()
        if name in PRODUCTS:
            self._workspace()
        if name in RANDOM and kwargs.get("generator") is None:
            self._draw()
        writes = func._schema.is_mutable
        captured = self.gpu.capture is not None
        before = _copies(func, args, kwargs) if captured and writes else []
        result = func(*args, **kwargs)
        known = {one.untyped_storage()._cdata for one in inputs}
        outputs = [one for one in tree_leaves(result) if isinstance(one, Tensor)]
        new = [one for one in outputs if one.untyped_storage()._cdata not in known]
        if to_gpu:
            self.gpu.open_context()
            for tensor in new:
                self.gpu.memory.add(tensor)
        if not (new or writes) or not (to_gpu or writes) or name == "aten::empty":
            return result
        short = name.removeprefix("aten::")
        if not captured:
            self.gpu.launch(short)
            return result
        # A captured operation does not run before the graph does.
        for tensor, values in before:
            tensor.copy_(values)
        for tensor in new:
            if tensor.is_floating_point():
                tensor.fill_(torch.nan)

        def again() -> None:
            with torch._C.DisableTorchFunction(), torch.no_grad(), _without(self):
                fresh = [
                    one for one in tree_leaves(func(*args, **kwargs)) if isinstance(one, Tensor)
                ]
                for old, values in zip(outputs, fresh, strict=True):
                    if old is not values:
                        old.copy_(values)

        self.gpu.launch(short, again=again)
        return result

    def _workspace(self) -> None:
        """What cuBLAS keeps for each stream (4096 * 8 KiB on compute capability 9.0)."""
        stream = self.gpu.current.number
        if self.gpu.workspace_bytes and stream not in self.workspaces:
            memory = torch.empty(self.gpu.workspace_bytes, dtype=torch.uint8)
            self.workspaces[stream] = memory
            self.gpu.memory.add(memory)

    def _draw(self) -> None:
        """A capture that failed leaves torch's own generator marked (CUDAGeneratorState)."""
        if self.gpu.drawing == "captured" and self.gpu.capture is None:
            raise RuntimeError("Offset increment outside graph capture encountered unexpectedly.")


def _copies(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """What the operation will overwrite, and its values."""
    written = []
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = kwargs.get(argument.name, args[place] if place < len(args) else None)
            written += [one for one in tree_leaves(value) if isinstance(one, Tensor)]
    return [(one, one.clone()) for one in written]


@contextmanager
def _without(mode: TorchDispatchMode) -> Iterator[None]:
    """What a graph computes is no operation of the host."""
    with torch.utils._python_dispatch._disable_current_modes():
        yield


class SaysItIs(TorchFunctionMode):
    """Takes `device="cuda"` for the fake's, and lets its tensors say where they are."""

    def __init__(self, gpu: FakeGpu, placement: Placement) -> None:
        super().__init__()
        self.gpu, self.placement = gpu, placement

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        found = _PROPERTIES.get(func)
        if found is not None:
            return found[0] if self.has(args[0]) else func(*args)
        name = getattr(func, "__name__", "")
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        on_gpu = [self.has(one) for one in tensors]
        if name == "numpy" and any(on_gpu):
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")
        if name in ("to", "cpu", "cuda", "type"):
            return self._move(func, name, args, kwargs)
        kind = _kind(kwargs.get("device"))
        if kind is None and any(on_gpu):
            kind = "cuda"
            sized = [one.dim() > 0 for one in tensors]
            if name not in MIXED and any(
                big and not here for big, here in zip(sized, on_gpu, strict=True)
            ):
                raise RuntimeError(
                    "Expected all tensors to be on the same device, but found at least two"
                    f" devices, cuda:0 and cpu! (when checking arguments of {name})"
                )
        if "device" in kwargs:
            kwargs["device"] = "cpu" if kind == "cuda" else kwargs["device"]
        generator = kwargs.get("generator")
        if generator is not None and kind in ("cuda", "cpu"):
            lies = getattr(generator, "kind", "cpu")
            if lies != kind:
                raise RuntimeError(
                    f"Expected a '{kind}' device type for generator but found '{lies}'"
                )
        asked = "device" in kwargs and kind == "cuda"
        if func is torch.autograd.grad:
            refuse_other_streams(self.gpu, args[0])
        with self.placement.on(kind):
            result = func(*args, **kwargs)
        note_streams(self.gpu, result)
        if asked and isinstance(result, Tensor) and not self.has(result):
            with torch._C.DisableTorchFunction():
                self.gpu.memory.add(result)  # torch.tensor copies what no operation has made
            self.gpu.launch("copy_")
        return result

    def has(self, tensor: Tensor) -> bool:
        with torch._C.DisableTorchFunction():
            return tensor.device.type == "cpu" and self.gpu.memory.has(tensor)

    def _move(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`to` and its like: a copy if the place changes, by CPU's `to` for all else."""
        here = "cuda" if self.has(args[0]) else "cpu"
        place = next(
            (one for one in (kwargs.get("device"), *args[1:2]) if _kind(one) is not None), None
        )
        other = args[1] if len(args) > 1 and isinstance(args[1], Tensor) else None
        there = "cpu" if name == "cpu" else "cuda" if name == "cuda" else _kind(place)
        if other is not None:
            there = "cuda" if self.has(other) else "cpu"
        if there in (None, here):
            there = here
        if there not in ("cpu", "cuda"):  # such as meta
            with self.placement.on("cpu"):
                return func(*args, **kwargs)
        dtypes = [one for one in (*args[1:], *kwargs.values()) if isinstance(one, torch.dtype)]
        if other is not None:
            dtypes = [other.dtype]
        if name == "type" and not dtypes:
            return func(*args, **kwargs)
        dtype = dtypes[0] if dtypes else args[0].dtype
        copy = bool(kwargs.get("copy", False)) or there != here
        with self.placement.on(there):
            return Tensor.to(args[0], dtype=dtype, copy=copy)


_PROPERTIES: dict[Any, tuple[Any]] = {
    Tensor.device.__get__: (CUDA,),  # type: ignore[attr-defined]
    Tensor.is_cuda.__get__: (True,),  # type: ignore[attr-defined]
    Tensor.is_cpu.__get__: (False,),  # type: ignore[attr-defined]
    Tensor.get_device: (0,),
}


def _kind(device: Any) -> str | None:
    """cuda, cpu or another type of a device; None if it is none."""
    if isinstance(device, torch.device):
        return device.type
    if isinstance(device, str):
        return torch.device(device).type
    return None
