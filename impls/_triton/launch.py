"""One launch of a Triton kernel: its arguments, how to start it, and what `triton.compile` needs to
compile it without a GPU.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2
from typing import Any

import torch
from torch import Tensor
from triton.compiler import ASTSource
from triton.tools.tensor_descriptor import TensorDescriptor

from . import kernels
from .configs import Config, Kernel, padded, without_descriptors

LOG2_E = log2(torch.e)
TYPES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32", torch.uint8: "u8"}
ALIGNED = 16  # Triton specializes for pointers and strides that are multiples of this
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

    def source(self) -> ASTSource:
        """What `start` would compile. Tensors may be on device "meta", which counts as aligned."""
        values = (*self.arguments, *self.constants.values())
        signature: dict[str, Any] = {}
        constants: dict[tuple[int, ...], Any] = {}
        attributes: dict[tuple[int, ...], list[list[Any]]] = {}
        for position, (name, value) in enumerate(zip(self.kernel.arg_names, values, strict=True)):
            if name in self.constants:
                signature[name], constants[position,] = "constexpr", value
                continue
            specialized = name not in kernels.SIZES
            signature[name] = _type(value, specialized=specialized)
            for path, leaf, kind in _leaves((position,), value, signature[name]):
                if kind == "constexpr":
                    constants[path] = leaf
                elif specialized and _is_aligned(leaf):
                    attributes[path] = [["tt.divisibility", ALIGNED]]
        return ASTSource(self.kernel, signature, constants, attributes)


def _type(value: Any, *, specialized: bool) -> Any:
    if isinstance(value, tuple):
        return tuple(_type(item, specialized=specialized) for item in value)
    if isinstance(value, Tensor):
        return "*" + TYPES[value.dtype]
    if isinstance(value, TensorDescriptor):
        return f"tensordesc<{TYPES[value.base.dtype]}{value.block_shape}>"
    if isinstance(value, float):
        return "fp32"
    if value is None or (specialized and value == 1):
        return "constexpr"
    return "i32" if -(2**31) <= value < 2**31 else "i64"


def _leaves(
    path: tuple[int, ...], value: Any, kind: Any
) -> Iterator[tuple[tuple[int, ...], Any, str]]:
    if isinstance(kind, tuple):
        for position, (item, item_kind) in enumerate(zip(value, kind, strict=True)):
            yield from _leaves((*path, position), item, item_kind)
    else:
        yield path, value, kind


def _is_aligned(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.is_meta or value.data_ptr() % ALIGNED == 0
    return isinstance(value, int) and value % ALIGNED == 0


def forward(
    q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, o: Tensor, lse: Tensor,
    *, setting: Setting, config: Config,
) -> Launch:  # fmt: skip
    """Fills o and lse."""
    mask, mask_strides = _bytes_of(key_mask)
    if config.specialize and not describable(q):
        config = without_descriptors("forward", config, max(q.shape[3], v.shape[3]))
    config, (tiled_k, tiled_v) = _tiled("forward", k, v, key_mask, config=config)
    tiled_q = _described(q, config.block_q) if config.specialize else q
    tensors = (tiled_q, tiled_k, tiled_v, mask, o, lse)
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
    config, (tiled_k, tiled_v) = _tiled("grad_q", k, v, key_mask, config=config)
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
    config, (tiled_q, tiled_do) = _tiled("grad_kv", q, do, key_mask, config=config)
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
    kernel: Kernel, a: Tensor, b: Tensor, key_mask: Tensor | None, *, config: Config
) -> tuple[Config, tuple[Tensor | TensorDescriptor, Tensor | TensorDescriptor]]:
    """The two tensors whose tiles the kernel iterates over, as pointers or descriptors.

    Pointers if keys are masked: a descriptor would read those too.
    """
    if not config.descriptors:
        return config, (a, b)
    if key_mask is not None or not (describable(a) and describable(b)):
        return without_descriptors(kernel, config, max(a.shape[3], b.shape[3])), (a, b)
    rows = config.block_q if kernel == "grad_kv" else config.block_kv
    return config, (_described(a, rows), _described(b, rows))


def _described(x: Tensor, rows: int) -> TensorDescriptor:
    """Of tiles of `rows` rows."""
    return TensorDescriptor.from_tensor(x, [1, 1, rows, padded(x.shape[3])])


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
