"""One launch of a Triton kernel: its arguments, how to start it, and what `triton.compile` needs to
compile it without a GPU.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import log2
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime.jit import create_function_from_signature
from triton.tools.tensor_descriptor import TensorDescriptor

from ..axes.lengths import sequences, starts
from . import kernels
from .configs import Config, Kernel, padded, without_descriptors

LOG2_E = log2(torch.e)
# cuTensorMapEncodeTiled: address and strides are multiples of the first, strides below the second
DESCRIPTOR_ALIGNED_BYTES, DESCRIPTOR_REACH_BYTES = 16, 2**40
UNDESCRIBABLE = (
    "no descriptor fits these tensors: it needs contiguous columns, and an address and strides in"
    " multiples of 16 bytes"
)
# hopper_forward.py. Registers of a thread at the start (65536 of an SM, 12 warps), then of its
# consumers and producer, which setmaxnreg takes in multiples of 8.
HOPPER_REGISTERS, CONSUMER_REGISTERS, PRODUCER_REGISTERS = 168, 240, 24
HOPPER_WIDTHS = (64, 128)  # what heads are padded to
SECTION_BYTES = 32 << 20  # keys and values of a section of heads: of 50 MiB of L2 (H100, H200)
HOPPER_SM_COUNT = 132  # where no GPU is at hand
WIDEST_WINDOW = 2**30  # no key is farther away, and kernels add it to positions in 32 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the three kernels must agree on.

    `band` and `window`: as the masks "local" and "chunked" (masks/rules.py), "" and 0 for neither.
    `softcap` is 0 for none.
    """

    scale: float
    causal: bool
    causal_offset: int
    tf32: bool
    softcap: float = 0.0
    band: str = ""
    window: int = 0

    def numbers(self) -> tuple[int, int | None, float, float | None]:
        """The kernels' arguments offset, window, scale_log2 and cap_factor."""
        window = min(self.window, WIDEST_WINDOW) if self.band else None
        if not self.softcap:
            return self.causal_offset, window, self.scale * LOG2_E, None
        return self.causal_offset, window, self.softcap * LOG2_E, self.scale / self.softcap


class Packed(NamedTuple):
    """Sequences that lie in one row: where each begins, and where the last ends, int32 [sequences +
    1]; and the most queries and keys of one.
    """

    q_starts: Tensor
    kv_starts: Tensor
    longest_q: int
    longest_kv: int

    @classmethod
    def of(cls, lengths: str, device: torch.device) -> "Packed | None":
        """None for a batch that is not ragged."""
        if not lengths:
            return None
        longest_q, longest_kv = map(max, zip(*sequences(lengths), strict=True))
        q_starts, kv_starts = (
            torch.tensor(one, dtype=torch.int32, device=device) for one in starts(lengths)
        )
        return cls(q_starts, kv_starts, longest_q, longest_kv)


class Paged(NamedTuple):
    """Keys and values in pages of a pool: k and v are [pages, kv_heads, page, width]. `table` has
    the pages of each sequence's n_kv keys in order: int32 [batch, ceil(n_kv / page)], contiguous.
    """

    table: Tensor
    n_kv: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """`arguments` come first in the kernel's signature, `constants` are compiled in, `options` are
    for the compiler.

    `config` is the requested one, or the same by pointers if these tensors do not fit it: then
    `why_not` says why.
    """

    kernel: Any
    config: Config
    programs: int
    arguments: tuple[Any, ...]
    constants: dict[str, Any]
    options: dict[str, Any]
    why_not: str | None = None

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
        if self.config.gluon:
            from triton.experimental.gluon._runtime import GluonASTSource

            return GluonASTSource(self.kernel, signature, constants, attributes)
        return ASTSource(self.kernel, signature, constants, attributes)


def forward(
    q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, o: Tensor, lse: Tensor,
    *, setting: Setting, config: Config, sinks: Tensor | None = None, packed: Packed | None = None,
    paged: Paged | None = None,
) -> Launch:  # fmt: skip
    """Fills o and lse. What the kernel in Gluon does not take goes to the portable one."""
    why_not, scattered = None, packed or paged
    if config.gluon:
        why_not = why_not_gluon(q, k, v, key_mask, o, sinks, scattered, setting)
        if why_not is None:
            return _hopper_forward(q, k, v, o, lse, setting=setting, config=config)
        config = config.by_pointers()
    mask, mask_strides = _bytes_of(key_mask)
    if config.specialize and (scattered or not describable(q)):
        config = without_descriptors("forward", config, max(q.shape[3], v.shape[3]))
    config, (tiled_k, tiled_v) = _tiled("forward", k, v, key_mask, scattered, config=config)
    tiled_q = _described(q, config.block_q) if config.specialize else q
    table = paged.table if paged else None
    tensors = (tiled_q, tiled_k, tiled_v, mask, *_starts(packed), table, sinks, o, lse)
    strides = (q.stride(), k.stride(), v.stride(), mask_strides, o.stride())
    made = _launch(
        kernels.forward_kernel, tensors, strides, (q, k, v), packed, setting, config,
        paged=paged, WARP_SPECIALIZE=config.specialize, PAGE=k.shape[2] if paged else 0,
    )  # fmt: skip
    return replace(made, why_not=why_not) if why_not else made


def why_not_gluon(
    q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, o: Tensor, sinks: Tensor | None,
    scattered: Packed | Paged | None, setting: Setting,
) -> str | None:  # fmt: skip
    """Why hopper_forward.py cannot compute this; None if it can, on a GPU that it is for."""
    if missing := _missing_for_gluon():
        return missing
    has = {
        "key mask": key_mask is not None,
        f"{setting.band} mask": setting.band,
        "softcap": setting.softcap,
        "sinks": sinks is not None,
        "pages": isinstance(scattered, Paged),
        "ragged batch": scattered,
    }
    if more := next((name for name, given in has.items() if given), None):
        return f"it takes no {more}"
    if q.dtype not in (torch.float16, torch.bfloat16):
        return f"it takes fp16 and bf16 only; these are {str(q.dtype).removeprefix('torch.')}"
    if max(q.shape[3], v.shape[3]) > max(HOPPER_WIDTHS):
        return f"it takes heads up to {max(HOPPER_WIDTHS)} wide"
    if o.stride(3) != 1 or not (describable(q) and describable(k) and describable(v)):
        return UNDESCRIBABLE
    return None


@cache
def _missing_for_gluon() -> str | None:
    try:
        from . import hopper_forward  # noqa: F401
    except (ImportError, AttributeError) as error:
        return f"Triton {triton.__version__} has not the Gluon that it is written in: {error}"
    return None


def _hopper_forward(
    q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor, *, setting: Setting, config: Config
) -> Launch:
    """A program per SM, which takes one tile of queries after another."""
    from triton.experimental.gluon.language import NVMMASharedLayout
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor

    from . import hopper_forward

    pad_k, pad_v = (max(min(HOPPER_WIDTHS), padded(x.shape[3])) for x in (k, v))
    layout = NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=4)
    tiles = (
        (q, config.block_q // 2, pad_k),
        (k, config.block_kv, pad_k),
        (v, config.block_kv, pad_v),
    )
    described = [
        GluonDescriptor.from_tensor(x, [1, 1, rows, columns], layout) for x, rows, columns in tiles
    ]
    batch, heads, n_q, _ = q.shape
    _, kv_heads, n_kv, _ = k.shape
    entries, group = batch * heads, heads // kv_heads
    head_bytes = n_kv * (k.shape[3] + v.shape[3]) * k.element_size()
    section = min(entries, max(1, SECTION_BYTES // head_bytes) * group)
    sizes = (entries, heads, group, n_q, n_kv, setting.causal_offset, section)
    return Launch(
        kernel=hopper_forward.hopper_forward_kernel,
        config=config,
        programs=min(-(-n_q // config.block_q) * entries, _sm_count(q.device)),
        arguments=(*described, o, lse, *o.stride()[:3], *sizes, setting.scale * LOG2_E),
        constants={
            "D_V": v.shape[3],
            "PAD_K": pad_k,
            "PAD_V": pad_v,
            "CAUSAL": setting.causal,
            "BLOCK_KV": config.block_kv,
            "STAGES": config.stages,
            "CONSUMER_REGISTERS": CONSUMER_REGISTERS,
            "PRODUCER_REGISTERS": PRODUCER_REGISTERS,
        },
        # Four warps of the first consumer; Triton adds those of the others.
        options={"num_warps": 4, "maxnreg": HOPPER_REGISTERS, "enable_fp_fusion": True},
    )


def _sm_count(device: torch.device) -> int:
    if device.type != "cuda":
        return HOPPER_SM_COUNT
    return torch.cuda.get_device_properties(device).multi_processor_count


def grad_q(
    q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, o: Tensor, do: Tensor, lse: Tensor,
    delta: Tensor, dq: Tensor, *, setting: Setting, config: Config, packed: Packed | None = None,
    sinks: Tensor | None = None, sink_terms: Tensor | None = None,
) -> Launch:  # fmt: skip
    """Fills dq, delta and sink_terms, like delta, whose sums are the gradients of sinks."""
    mask, mask_strides = _bytes_of(key_mask)
    config, (tiled_k, tiled_v) = _tiled("grad_q", k, v, key_mask, packed, config=config)
    tensors = (
        q,
        tiled_k,
        tiled_v,
        mask,
        *_starts(packed),
        sinks,
        o,
        do,
        lse,
        delta,
        dq,
        sink_terms,
    )
    inputs = (q.stride(), k.stride(), v.stride(), mask_strides)
    strides = (*inputs, o.stride(), do.stride(), dq.stride())
    return _launch(kernels.grad_q_kernel, tensors, strides, (q, k, v), packed, setting, config)


def grad_kv(
    q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, do: Tensor, lse: Tensor,
    delta: Tensor, dk: Tensor, dv: Tensor, *, setting: Setting, config: Config,
    packed: Packed | None = None,
) -> Launch:  # fmt: skip
    """Fills dk and dv; needs the delta that `grad_q` filled."""
    mask, mask_strides = _bytes_of(key_mask)
    config, (tiled_q, tiled_do) = _tiled("grad_kv", q, do, key_mask, packed, config=config)
    tensors = (tiled_q, k, v, mask, *_starts(packed), tiled_do, lse, delta, dk, dv)
    inputs = (q.stride(), k.stride(), v.stride(), mask_strides)
    strides = (*inputs, do.stride(), dk.stride(), dv.stride())
    return _launch(kernels.grad_kv_kernel, tensors, strides, (q, k, v), packed, setting, config)


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
    kernel: Kernel, a: Tensor, b: Tensor, key_mask: Tensor | None,
    scattered: Packed | Paged | None, *, config: Config,
) -> tuple[Config, tuple[Tensor | TensorDescriptor, Tensor | TensorDescriptor]]:  # fmt: skip
    """The two tensors whose tiles the kernel iterates over, as pointers or descriptors.

    Pointers if keys are masked, or sequences packed or in pages: a descriptor would read masked
    keys, and the next sequence, and follows no table.
    """
    if not config.descriptors:
        return config, (a, b)
    if key_mask is not None or scattered or not (describable(a) and describable(b)):
        return without_descriptors(kernel, config, max(a.shape[3], b.shape[3])), (a, b)
    rows = config.block_q if kernel == "grad_kv" else config.block_kv
    return config, (_described(a, rows), _described(b, rows))


def _described(x: Tensor, rows: int) -> TensorDescriptor:
    """Of tiles of `rows` rows."""
    return TensorDescriptor.from_tensor(x, [1, 1, rows, padded(x.shape[3])])


def _bytes_of(key_mask: Tensor | None) -> tuple[Tensor | None, tuple[int, ...] | None]:
    return (None, None) if key_mask is None else (key_mask.view(torch.uint8), key_mask.stride())


def _starts(packed: Packed | None) -> tuple[Tensor | None, Tensor | None]:
    return (None, None) if packed is None else (packed.q_starts, packed.kv_starts)


def _launch(
    kernel: Any, tensors: tuple[Any, ...], strides: tuple[Any, ...],
    qkv: tuple[Tensor, Tensor, Tensor], packed: Packed | None, setting: Setting, config: Config,
    paged: Paged | None = None, **more: int,
) -> Launch:  # fmt: skip
    """A program for each tile of queries, or of keys if it computes their gradients."""
    q, k, v = qkv
    sequences, n_q, packed_rows = q.shape[0], q.shape[2], None
    n_kv = paged.n_kv if paged else k.shape[2]
    if packed:
        sequences, packed_rows = len(packed.q_starts) - 1, n_q
        n_q, n_kv = packed.longest_q, packed.longest_kv
    tiles, heads = -(-n_q // config.block_q), q.shape[1]
    if kernel is kernels.grad_kv_kernel:
        tiles, heads = -(-n_kv // config.block_kv), k.shape[1]
    sizes = (q.shape[1], q.shape[1] // k.shape[1], n_q, n_kv, packed_rows)
    constants = {
        "D_K": q.shape[3],
        "D_V": v.shape[3],
        "PAD_K": padded(q.shape[3]),
        "PAD_V": padded(v.shape[3]),
        "CAUSAL": setting.causal,
        "BAND": setting.band,
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
        programs=tiles * sequences * heads,
        arguments=(*tensors, *strides, *sizes, *setting.numbers()),
        constants=constants,
        options=options,
    )
