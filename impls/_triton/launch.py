"""One launch of a Triton kernel: its arguments, how to start it, and what `triton.compile` needs to
compile it without a GPU.
"""

from dataclasses import dataclass
from math import log2
from typing import Any

import torch
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime.jit import create_function_from_signature
from triton.tools.tensor_descriptor import TensorDescriptor

from . import kernels
from .configs import Config, padded

LOG2_E = log2(torch.e)
# cuTensorMapEncodeTiled: address and strides are multiples of the first, strides below the second
DESCRIPTOR_ALIGNED_BYTES, DESCRIPTOR_REACH_BYTES = 16, 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the three kernels must agree on."""

    scale: float
    causal: bool
    causal_offset: int
    tf32: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """`arguments` come first in the kernel's signature, `constants` are compiled in, `options` are
    for the compiler.

    `config` is the requested one, or the same without descriptors if the tensors do not fit them.
    """

    kernel: Any
    config: Config
    programs: int
    arguments: tuple[Any, ...]
    constants: dict[str, Any]
    options: dict[str, Any]

    def start(self) -> None:
        self.kernel[(self.programs,)](*self.arguments, **self.constants, **self.options)

    def source(self, target: GPUTarget) -> ASTSource:
        """What `start` would compile on such a GPU, by Triton's own rules: `start` then finds it in
        Triton's cache. Tensors may be on device "meta", which counts as aligned.
        """
        backend = make_backend(target)
        bind = create_function_from_signature(self.kernel.signature, self.kernel.params, backend)
        named = self.constants | self.options
        bound, specialization, options = bind(*self.arguments, **named)
        packed = self.kernel._pack_args(backend, named, bound, specialization, options)
        _, signature, constants, attributes = packed
        return ASTSource(self.kernel, signature, constants, attributes)


def forward(
    q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, o: Tensor, lse: Tensor,
    *, setting: Setting, config: Config,
) -> Launch:  # fmt: skip
    """Fills o and lse."""
    mask, mask_strides = _bytes_of(key_mask)
    config, (tiled_k, tiled_v) = _tiled(k, v, key_mask, config=config, rows=config.block_kv)
    tensors = (q, tiled_k, tiled_v, mask, o, lse)
    strides = (q.stride(), k.stride(), v.stride(), mask_strides, o.stride())
    programs = -(-q.shape[2] // config.block_q) * q.shape[0] * q.shape[1]
    return _launch(
        kernels.forward_kernel, programs, tensors, strides, (q, k, v), setting, config,
        WARP_SPECIALIZE=config.specialize,
    )  # fmt: skip


def grad_q(
    q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, o: Tensor, do: Tensor, lse: Tensor,
    delta: Tensor, dq: Tensor, *, setting: Setting, config: Config,
) -> Launch:  # fmt: skip
    """Fills dq and delta."""
    mask, mask_strides = _bytes_of(key_mask)
    config, (tiled_k, tiled_v) = _tiled(k, v, key_mask, config=config, rows=config.block_kv)
    tensors = (q, tiled_k, tiled_v, mask, o, do, lse, delta, dq)
    inputs = (q.stride(), k.stride(), v.stride(), mask_strides)
    strides = (*inputs, o.stride(), do.stride(), dq.stride())
    programs = -(-q.shape[2] // config.block_q) * q.shape[0] * q.shape[1]
    return _launch(kernels.grad_q_kernel, programs, tensors, strides, (q, k, v), setting, config)


def grad_kv(
    q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, do: Tensor, lse: Tensor,
    delta: Tensor, dk: Tensor, dv: Tensor, *, setting: Setting, config: Config,
) -> Launch:  # fmt: skip
    """Fills dk and dv; needs the delta that `grad_q` filled."""
    mask, mask_strides = _bytes_of(key_mask)
    config, (tiled_q, tiled_do) = _tiled(q, do, key_mask, config=config, rows=config.block_q)
    tensors = (tiled_q, k, v, mask, tiled_do, lse, delta, dk, dv)
    inputs = (q.stride(), k.stride(), v.stride(), mask_strides)
    strides = (*inputs, do.stride(), dk.stride(), dv.stride())
    programs = -(-k.shape[2] // config.block_kv) * k.shape[0] * k.shape[1]
    return _launch(kernels.grad_kv_kernel, programs, tensors, strides, (q, k, v), setting, config)


def describable(x: Tensor) -> bool:
    """Whether a tensor descriptor can represent x.

    cuTensorMapEncodeTiled and Triton restrict its address and strides.
    """
    *strides, last = (stride * x.element_size() for stride in x.stride())
    contiguous_and_aligned = (
        last == x.element_size() and x.data_ptr() % DESCRIPTOR_ALIGNED_BYTES == 0
    )
    return contiguous_and_aligned and all(
        0 < stride < DESCRIPTOR_REACH_BYTES and stride % DESCRIPTOR_ALIGNED_BYTES == 0
        for stride in strides
    )


def _tiled(
    a: Tensor, b: Tensor, key_mask: Tensor | None, *, config: Config, rows: int
) -> tuple[Config, tuple[Tensor | TensorDescriptor, Tensor | TensorDescriptor]]:
    """The two tensors whose tiles the kernel iterates over, as pointers or descriptors.

    Pointers if keys are masked: a descriptor would read those too.
    """
    if not config.descriptors:
        return config, (a, b)
    if key_mask is not None or not (describable(a) and describable(b)):
        return config.by_pointers(), (a, b)
    described = (TensorDescriptor.from_tensor(x, [1, 1, rows, padded(x.shape[3])]) for x in (a, b))
    return config, (next(described), next(described))


def _bytes_of(key_mask: Tensor | None) -> tuple[Tensor | None, tuple[int, ...] | None]:
    return (None, None) if key_mask is None else (key_mask.view(torch.uint8), key_mask.stride())


def _launch(
    kernel: Any, programs: int, tensors: tuple[Any, ...], strides: tuple[Any, ...],
    qkv: tuple[Tensor, Tensor, Tensor], setting: Setting, config: Config, **more: bool,
) -> Launch:  # fmt: skip
    q, k, v = qkv
    sizes = (q.shape[1], q.shape[1] // k.shape[1], q.shape[2], k.shape[2], setting.causal_offset)
    constants = {
        "D_K": q.shape[3],
        "D_V": v.shape[3],
        "PAD_K": padded(q.shape[3]),
        "PAD_V": padded(v.shape[3]),
        "CAUSAL": setting.causal,
        "MASKED": tensors[3] is not None,
        "PRECISION": "tf32" if setting.tf32 else "ieee",
        "BLOCK_Q": config.block_q,
        "BLOCK_KV": config.block_kv,
        "DESCRIPTORS": config.descriptors,
        **more,
    }
    # Explicit, because the default of fusing multiply and add differs between versions of Triton.
    options = {"num_warps": config.warps, "num_stages": config.stages, "enable_fp_fusion": True}
    return Launch(
        kernel=kernel,
        config=config,
        programs=programs,
        arguments=(*tensors, *strides, *sizes, setting.scale * LOG2_E),
        constants=constants,
        options=options,
    )
