"""Our Triton kernels compiled for GPUs that are not here, as JSON: `python -m
tests.impls._triton.compiled compiled 80 90`.

A process of its own, so that no other test meets triton.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.experimental.gluon._runtime import GluonASTSource
from triton.runtime.jit import create_function_from_signature

from attnbench.impls import Problem
from attnbench.impls._triton.configs import KERNELS, Config, Kernel, Kind, candidates
from attnbench.impls._triton.launch import Launch
from attnbench.impls._triton.op import example

PLAIN: dict[str, Any] = {"dtype": "bf16", "d_k": 64, "d_v": 64}
OTHERS: tuple[dict[str, Any], ...] = (
    {"mask": "local", "window": 100, "softcap": 2.0, "sinks": True},
    {"mask": "chunked", "window": 64, "causal": True},
    {"mask": "padding", "d_k": 72, "d_v": 96, "dtype": "fp16"},
    {"lengths": "q1000_q300", "causal": True},
    {"page": 16},
    {"dtype": "fp32"},
    {"d_k": 128, "d_v": 128, "causal": True},
    {"d_k": 256, "d_v": 256},
)


def jobs(capability: int, *, every: bool) -> Iterator[tuple[Kind, Kernel, Config]]:
    """One candidate of each kernel; with `every` all, and the first for other kinds."""
    for more in ({"causal": True}, *OTHERS) if every else ({"causal": True},):
        sizes = {} if "lengths" in more else {"seq_len": 1024}
        shape = {**PLAIN, **sizes, "batch": 1, "d_model": 1, "heads": 1, **more}
        kind = Kind.of(Problem(**shape), gpu="", capability=capability)
        for kernel in KERNELS[:1] if kind.problem.page else KERNELS:
            found = candidates(kernel, kind)
            if not every:
                found = found[:1] if capability == 90 else found[-1:]
            elif len(more) > 1:
                found = found[:1]
            yield from ((kind, kernel, one) for one in found)


def source(made: Launch, target: GPUTarget) -> ASTSource:
    """What a launch would compile on such a GPU, by Triton's own rules."""
    backend, function = make_backend(target), made.function
    bind = create_function_from_signature(function.signature, function.params, backend)
    named = {**made.arguments, **made.options}
    bound, specialization, options = bind(**named)
    _, *parts = function._pack_args(backend, named, bound, specialization, options)
    return (GluonASTSource if made.config.gluon else ASTSource)(function, *parts)


def compiled(*capabilities: str, every: bool = False) -> Iterator[dict[str, Any]]:
    for capability in map(int, capabilities):
        target = GPUTarget("cuda", capability, 32)
        for kind, kernel, config in jobs(capability, every=every):
            made = example(kind, torch.device("meta"))(kernel, config)
            assert made.config == config
            built = triton.compile(source(made, target), target=target, options=made.options)
            ptx = built.asm["ptx"]
            instructions = ("tcgen05.mma", "wgmma.mma", "mma.sync")
            yield {
                "kernel": f"{kernel} {config} of {kind}",
                "capability": capability,
                "dtype": kind.problem.dtype,
                "gluon": config.gluon,
                "described": config.descriptors,
                "instruction": next((name for name in instructions if name in ptx), "fma"),
                "copies_tiles": "cp.async.bulk.tensor" in ptx,
                "cubin_bytes": len(built.asm["cubin"]),
                "shared_bytes": built.metadata.shared,
            }


if __name__ == "__main__":
    torch.set_num_threads(1)
    _, check, *which = sys.argv
    print(json.dumps([*compiled(*which, every=check == "every")]))
