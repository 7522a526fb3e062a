"""The memory of a tensor as it is: read without an operation of torch, which a backend may have
replaced, or which could finish its work first.

What is called here was bound before any backend loaded. A GPU's memory is copied by its driver.
"""

import ctypes
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided
from torch import Tensor

Array = np.ndarray[Any, np.dtype[Any]]
Places = tuple[Array, ...]
"""Of elements: an index for each axis."""

PIECE_BYTES = 8 << 20  # copied at a time, of a tensor that is not contiguous
WORD = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
NUMBER = {torch.float16: np.float16, torch.float32: np.float32, torch.float64: np.float64}
ON_GPU = 16  # elements that are copied one by one, some us each
data_ptr, stride_of, size_of, to_cpu = Tensor.data_ptr, Tensor.stride, Tensor.size, Tensor.cpu
plain, contiguous, from_buffer = (
    torch._C.DisableTorchFunction,
    np.ascontiguousarray,
    np.frombuffer,
)


def elements(tensor: Tensor, places: Places) -> Array:
    """Those at some places, in float64. Of a GPU the first few are raw, the others by torch."""
    words = _of_gpu(tensor, places) if tensor.device.type == "cuda" else _laid_out(tensor)[places]
    if tensor.dtype == torch.bfloat16:  # the upper half of a float32
        return (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return words.view(NUMBER[tensor.dtype]).astype(np.float64)


def pieces(tensor: Tensor) -> Iterator[memoryview]:
    """All of its bytes in the order of its elements, whatever its strides."""
    if tensor.numel():
        words = _host_copy(tensor) if tensor.device.type == "cuda" else _laid_out(tensor)
        yield from _in_order(words)


def _in_order(words: Array) -> Iterator[memoryview]:
    if words.flags.c_contiguous:
        yield words.data.cast("B")
    elif words.ndim > 1 and words.nbytes > PIECE_BYTES:
        for part in words:
            yield from _in_order(part)
    else:
        yield contiguous(words).data.cast("B")


def _laid_out(tensor: Tensor, memory: Any = None) -> Array:
    """Its words in its shape, in `memory`, by default its own."""
    with plain():
        shape, strides, size = tuple(size_of(tensor)), stride_of(tensor), tensor.dtype.itemsize
        if memory is None:
            memory = (ctypes.c_byte * _span_bytes(tensor)).from_address(data_ptr(tensor))
            memory.held = tensor
    words = from_buffer(memory, dtype=WORD[size])
    return as_strided(words, shape, [size * one for one in strides], writeable=False)


def _span_bytes(tensor: Tensor) -> int:
    """From its first element to its last."""
    steps = zip(size_of(tensor), stride_of(tensor), strict=True)
    return int(1 + sum((size - 1) * stride for size, stride in steps)) * tensor.dtype.itemsize


# ---- CUDA: the device must have finished ---------------------------------------------------------


@cache
def _copy_from_gpu() -> Any:
    """cuMemcpyDtoH(host, device, bytes), CUDA Driver API; None without a driver."""
    try:
        copy = ctypes.CDLL("libcuda.so.1").cuMemcpyDtoH_v2
    except (OSError, AttributeError):
        return None
    copy.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t)
    return copy


def _host_copy(tensor: Tensor) -> Array:
    copy = _copy_from_gpu()
    if copy is not None:
        with plain():
            memory = (ctypes.c_byte * _span_bytes(tensor))()
            failed = copy(ctypes.addressof(memory), data_ptr(tensor), len(memory))
        if not failed:
            return _laid_out(tensor, memory)
    return _laid_out(to_cpu(tensor.detach()))


def _of_gpu(tensor: Tensor, places: Places) -> Array:
    raw = _raw_of_gpu(tensor, places)
    indices = tuple(torch.from_numpy(axis).to(tensor.device) for axis in places)
    words = _laid_out(to_cpu(tensor.detach()[indices])).copy()
    words[: len(raw)] = raw
    return words


def _raw_of_gpu(tensor: Tensor, places: Places) -> Array:
    """The words of the first places; none if the driver cannot copy them."""
    copy, size = _copy_from_gpu(), tensor.dtype.itemsize
    words = np.empty(min(ON_GPU, len(places[0])) if copy else 0, dtype=WORD[size])
    with plain():
        strides, begin = stride_of(tensor), data_ptr(tensor)
    for number in range(len(words)):
        offset = sum(int(axis[number]) * step for axis, step in zip(places, strides, strict=True))
        if copy(words.ctypes.data + number * size, begin + offset * size, size):
            return words[:number]
    return words
