"""Triton's interpreter, set up to run our kernels.

The first import of triton chooses the interpreter for good, so it has processes of its own:
`TRITON_INTERPRET=1 python -m tests.impls._triton.interpreted_problems CHECK[:ARGUMENT]...`, or
`interpreted_operator`. They print the results of the functions CHECK as JSON; the tests check them.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import triton.language as tl
from torch import Tensor
from triton.runtime import interpreter

from attnbench.impls._triton import launch
from attnbench.impls._triton.configs import KERNELS, Config, Kernel

CPU = torch.device("cpu")
Configs = Mapping[Kernel, Config]
SMALL: Configs = dict.fromkeys(KERNELS, Config(32, 32, 4, 1))  # several tiles even if short
DESCRIBED: Configs = dict.fromkeys(KERNELS, Config(32, 32, 4, 1, descriptors=True))


def fix_bf16() -> None:
    """The interpreter stores bf16 as 16-bit integers: it truncates instead of rounding, and
    multiplies matrices of those integers.
    """
    builder = interpreter.InterpreterBuilder
    cast, dot = builder.cast_impl, builder.create_dot

    def rounding_cast(self: Any, source: Any, to: Any) -> Any:
        if (source.dtype.scalar, to.scalar) != (tl.float32, tl.bfloat16):
            return cast(self, source, to)
        rounded = torch.from_numpy(np.ascontiguousarray(source.data)).bfloat16()
        bits = rounded.view(torch.int16).numpy().view(np.uint16)
        return interpreter.TensorHandle(bits, tl.bfloat16)

    def widened(self: Any, operand: Any) -> Any:
        return cast(self, operand, tl.float32) if operand.dtype.scalar == tl.bfloat16 else operand

    builder.cast_impl = rounding_cast

    def float_dot(self: Any, a: Any, b: Any, *others: Any) -> Any:
        return dot(self, widened(self, a), widened(self, b), *others)

    builder.create_dot = float_dot


@contextmanager
def poisoned() -> Iterator[None]:
    """Fills fresh memory with NaN, so that an element that no program writes is noticed."""

    def filled(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda *arguments, **named: make(*arguments, **named).fill_(torch.nan)

    with (
        patch.object(torch, "empty", filled(torch.empty)),
        patch.object(torch, "empty_like", filled(torch.empty_like)),
    ):
        yield


@contextmanager
def launches() -> Iterator[list[launch.Launch]]:
    made: list[launch.Launch] = []
    start = launch.Launch.start

    def noted(one: launch.Launch) -> None:
        made.append(one)
        start(one)

    with patch.object(launch.Launch, "start", noted):
        yield made


def main(checks: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    fix_bf16()
    asked = [one.split(":") for one in sys.argv[1:]]
    print(json.dumps({name: checks[name](*given) for name, *given in asked}))
