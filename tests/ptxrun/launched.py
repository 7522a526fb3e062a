"""A `Launch` of the project's kernels, compiled by Triton for a GPU and executed on CPU tensors.

Imports triton.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
import triton
from triton.backends.compiler import GPUTarget

from attnbench.impls._triton.launch import Launch

from .block import Block, Timing
from .compilers import bound
from .memory import PARAMETER_BASE, RAW, Global, TensorMap
from .text import parse

BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
Value = tuple[str, Any]
"""`tensor` and its index, `map` and what describes it, or a type and a number."""


def compiled(launch: Launch, capability: tuple[int, int]) -> Any:
    target = GPUTarget("cuda", 10 * capability[0] + capability[1], 32)
    return triton.compile(launch.source(target), target, launch.options)


def execute(
    launch: Launch, capability: tuple[int, int], timing: Timing, *, races: bool = True,
    strict: bool = False, programs: int | None = None, ptx: str | None = None,
) -> set[int]:  # fmt: skip
    """Change the launch's tensors as the GPU would; the lines of the PTX that were executed.

    `programs` replaces the launch's number, `ptx` what Triton compiled. Raises Fault, and
    NotImplementedError for an instruction that is not known.
    """
    kernel = compiled(launch, capability)
    program = parse(ptx or kernel.asm["ptx"])
    signature = launch.source(GPUTarget("cuda", 10 * capability[0] + capability[1], 32)).signature
    tensors: list[torch.Tensor] = []
    metas = iter(kernel.metadata.tensordesc_meta or ())
    values = list(flat(launch.arguments, signature.values(), tensors, metas))
    # Two pointers more, to scratch memory, of which these kernels have none.
    values += [("u64", 0)] * (len(program.parameters) - len(values))
    arrays = [bits_of(x) for x in tensors]
    memory = Global(arrays)
    parameters: dict[str, np.ndarray] = {}
    described = {}
    for (name, _, size), (kind, value) in zip(program.parameters, values, strict=True):
        if kind == "map":
            described[name] = value
        elif kind == "fp32":
            parameters[name] = np.array([value], np.float32).view(np.uint32)
        else:
            number = memory.address(value) if kind == "tensor" else int(value)
            parameters[name] = np.array([number & (1 << 8 * size) - 1], RAW[size])
    code = bound(program, parameters)
    maps = {
        PARAMETER_BASE + code.offsets[name]: TensorMap(address=memory.address(index), **sizes)
        for name, (index, sizes) in described.items()
    }
    count = programs or launch.programs
    segments: set[int] = set()
    for index in range(count):
        block = Block(code, memory, kernel.metadata.shared, index=index, count=count, maps=maps,
                      timing=timing, races=races, strict=strict)  # fmt: skip
        block.run()
        segments |= block.segments
    for index, (x, array) in enumerate(zip(tensors, arrays, strict=True)):
        filled = torch.from_numpy(memory.copy_of(index, array)).view(x.dtype)
        x.copy_(filled.as_strided(x.shape, x.stride()))
    return code.lines(segments)


def flat(
    arguments: Sequence[Any],
    kinds: Sequence[Any],
    tensors: list[torch.Tensor],
    metas: Iterator[Any],
) -> Iterator[Value]:
    """The parameters in PTX's order; `tensors` gets those that they point to."""
    for value, kind in zip(arguments, kinds, strict=False):
        if isinstance(kind, tuple):
            yield from flat(value, kind, tensors, metas)
        elif str(kind).startswith("*"):
            tensors.append(value)
            yield "tensor", len(tensors) - 1
        elif str(kind).startswith("tensordesc"):
            tensors.append(value.base)
            yield "map", (len(tensors) - 1, map_sizes(value, next(metas)))
            yield from (("u32", size) for size in value.shape)
            yield from (("u64", stride) for stride in value.strides)
        elif kind != "constexpr":
            yield str(kind), value


def map_sizes(descriptor: Any, meta: dict[str, Any]) -> dict[str, Any]:
    item = descriptor.base.element_size()
    return {
        "shape": tuple(descriptor.shape[::-1]),
        "strides": tuple(stride * item for stride in descriptor.strides[::-1]),
        "box": tuple(meta["block_size"][::-1]),
        "item_bytes": item,
        "swizzle": meta["swizzle"],
    }


def bits_of(x: torch.Tensor) -> np.ndarray:
    """All that lies between a tensor's first and last element, as it lies there."""
    spread = sum((n - 1) * stride for n, stride in zip(x.shape, x.stride(), strict=True)) + 1
    return x.detach().as_strided((spread,), (1,)).view(BITS[x.element_size()]).numpy().copy()
