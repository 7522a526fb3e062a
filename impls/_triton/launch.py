"""One launch of a Triton kernel: what it needs, its arguments, and how to start it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log2
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from ..axes.lengths import sequences, starts
from ..backend import Inputs
from ..problem import Problem
from ..shared.mask_tensors import padded_keys
from . import kernels
from .configs import BANDS, DESCRIPTOR_ALIGNED_BYTES, GLUON_WIDTHS, Config, Kernel, padded

LOG2_E = log2(torch.e)
DESCRIPTOR_REACH_BYTES = 2**40  # cuTensorMapEncodeTiled: strides are below it
# hopper_forward.py. Registers of a thread at the start (65536 of an SM, 12 warps), then of its
# consumers and producer, which setmaxnreg takes in multiples of 8.
HOPPER_REGISTERS, CONSUMER_REGISTERS, PRODUCER_REGISTERS = 168, 240, 24
SECTION_BYTES = 32 << 20  # keys and values of a section of heads: of 50 MiB of L2 (H100, H200)
HOPPER_SM_COUNT = 132  # where no GPU is at hand
WIDEST_WINDOW = 2**30  # no key is farther away, and kernels add it to positions in 32 bits


class Setting(NamedTuple):
    """What all launches of a call need beside the tensors that it computes with: configurations,
    and arguments of the kernels by name, as kernels/__init__.py explains them.
    """

    configs: Mapping[Kernel, Config]
    arguments: Mapping[str, Any]

    @classmethod
    def of(cls, problem: Problem, inputs: Inputs, configs: Mapping[Kernel, Config]) -> Self:
        """`configs`: of the kernels that the problem needs."""
        p, device, sizes = problem, inputs.query.device, dict[str, Any]()
        padding = padded_keys(p, device)
        if p.lengths:  # the kernels' n_q and n_kv are those of the longest
            sizes["n_q"], sizes["n_kv"] = map(max, zip(*sequences(p.lengths), strict=True))
            for name, one in zip(("q_starts", "kv_starts"), starts(p.lengths), strict=True):
                sizes[name] = torch.tensor(one, dtype=torch.int32, device=device)
        if p.page:
            sizes |= {"n_kv": p.kv_seq_len, "page_table": inputs.more["page_table"]}
        tf32 = torch.get_float32_matmul_precision() != "highest"
        arguments = {
            "key_mask": None if padding is None else (~padding).view(torch.uint8),
            "offset": max(p.causal_offset, 0),  # queries that see no key never get here
            "window": min(p.window, WIDEST_WINDOW) if p.mask in BANDS else None,
            "scale": p.scale,
            "scale_log2": (p.softcap or p.scale) * LOG2_E,
            "cap_factor": p.scale / p.softcap if p.softcap else None,
            "CAUSAL": p.causal,
            "BAND": p.mask if p.mask in BANDS else "",
            "PRECISION": "tf32" if tf32 else "ieee",
            "PAGE": p.page,
        }
        return cls(configs, arguments | sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """`arguments` are the kernel's, by name; `options` are for the compiler. `config`: the one that
    was set, or its tiles by pointers if these tensors do not fit descriptors.
    """

    function: Any
    config: Config
    programs: int
    arguments: Mapping[str, Any]
    options: Mapping[str, Any]

    def start(self) -> None:
        self.function[(self.programs,)](**self.arguments, **self.options)

    def compile(self) -> None:
        """What `start` would run, so that it finds it."""
        self.function.warmup(grid=(self.programs,), **self.arguments, **self.options)


def launch(kernel: Kernel, setting: Setting, **tensors: Any) -> Launch:
    """Of one kernel on tensors by the names of its arguments: q, k, v, sinks, o and lse; in the
    other two kernels do and delta as well, and dq and sink_terms, or dk and dv. A program for each
    tile of queries, or of keys if it computes their gradients.
    """
    config, q, k, v = setting.configs[kernel], tensors["q"], tensors["k"], tensors["v"]
    values = {
        "n_q": q.shape[2],
        "n_kv": k.shape[2],
        **setting.arguments,
        **tensors,
        "heads": q.shape[1],
        "group": q.shape[1] // k.shape[1],
        "D_K": q.shape[3],
        "D_V": v.shape[3],
        "PAD_K": padded(q.shape[3]),
        "PAD_V": padded(v.shape[3]),
        "BLOCK_Q": config.block_q,
        "BLOCK_KV": config.block_kv,
    }
    values |= {f"{name}_strides": x.stride() for name, x in values.items() if hasattr(x, "stride")}
    starts = values.get("q_starts")
    values["packed_rows"] = None if starts is None else q.shape[2]
    # Descriptors would read masked keys and the next sequence, and follow no table.
    scattered = not (values["key_mask"] is starts is None) or values["PAGE"]
    if config.gluon and not scattered and all(describable(values[name]) for name in "qkv"):
        return _hopper_forward(values, config)
    # A program iterates over the tiles of these, and holds a tile of the others.
    rows, *iterated = (config.block_kv, "k", "v")
    tiles = -(-values["n_q"] // config.block_q) * q.shape[1]
    if kernel == "grad_kv":
        rows, *iterated = (config.block_q, "q", "do")
        tiles = -(-values["n_kv"] // config.block_kv) * k.shape[1]
    if config.gluon or scattered or not all(describable(values[name]) for name in iterated):
        config = replace(config, descriptors=False, gluon=False)
    for name in iterated if config.descriptors else ():
        tile = [1, 1, rows, padded(values[name].shape[3])]
        values[name] = TensorDescriptor.from_tensor(values[name], tile)
    values["DESCRIPTORS"] = config.descriptors
    function = getattr(kernels, f"{kernel}_kernel")
    return Launch(
        function=function,
        config=config,
        programs=tiles * (len(q) if starts is None else len(starts) - 1),
        arguments={name: values.get(name) for name in function.arg_names},
        # Explicit, because the default of fusing multiply and add differs between versions.
        options={"num_warps": config.warps, "num_stages": config.stages, "enable_fp_fusion": True},
    )


def _hopper_forward(values: dict[str, Any], config: Config) -> Launch:
    """A program per SM, which takes one tile of queries after another; of problems for which
    Kind.why_not_gluon is None.
    """
    from triton.experimental.gluon.language import NVMMASharedLayout
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor

    from .hopper_forward import hopper_forward_kernel

    q, k, v = (values[name] for name in "qkv")
    entries, sm_count = q.shape[0] * q.shape[1], HOPPER_SM_COUNT
    if q.device.type == "cuda":
        sm_count = torch.cuda.get_device_properties(q.device).multi_processor_count
    head_bytes = k.shape[2] * (k.shape[3] + v.shape[3]) * k.element_size()
    values["o_batch"], values["o_head"], values["o_row"], _ = values["o_strides"]
    values |= {
        "entries": entries,
        "section": min(entries, max(1, SECTION_BYTES // head_bytes) * values["group"]),
        "PAD_K": max(min(GLUON_WIDTHS), values["PAD_K"]),
        "PAD_V": max(min(GLUON_WIDTHS), values["PAD_V"]),
        "STAGES": config.stages,
        "CONSUMER_REGISTERS": CONSUMER_REGISTERS,
        "PRODUCER_REGISTERS": PRODUCER_REGISTERS,
    }
    layout = NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=4)
    rows = {"q": config.block_q // 2, "k": config.block_kv, "v": config.block_kv}
    for name in "qkv":
        tile = [1, 1, rows[name], values["PAD_V" if name == "v" else "PAD_K"]]
        values[name] = GluonDescriptor.from_tensor(values[name], tile, layout)
    return Launch(
        function=hopper_forward_kernel,
        config=config,
        programs=min(-(-q.shape[2] // config.block_q) * entries, sm_count),
        arguments={name: values[name] for name in hopper_forward_kernel.arg_names},
        # Four warps of the first consumer; Triton adds those of the others.
        options={"num_warps": 4, "maxnreg": HOPPER_REGISTERS, "enable_fp_fusion": True},
    )


def describable(x: Tensor) -> bool:
    """Whether a tensor descriptor can represent x: cuTensorMapEncodeTiled and Triton restrict its
    address and strides.
    """
    *strides, last = (stride * x.element_size() for stride in x.stride())
    aligned = all(at % DESCRIPTOR_ALIGNED_BYTES == 0 for at in (x.data_ptr(), *strides))
    reached = all(0 < stride < DESCRIPTOR_REACH_BYTES for stride in strides)
    return last == x.element_size() and aligned and reached
