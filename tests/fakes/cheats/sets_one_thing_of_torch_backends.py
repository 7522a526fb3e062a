"""Sets one thing of torch.backends in its calls: each that it has, in a backend of its own."""

from contextlib import suppress
from functools import partial

import torch
from torch.nn.functional import scaled_dot_product_attention

CONTAINED = "the setting is one of its own process"
VARIANTS = (  # all that torch 2.13 lets a process set
    "cuda.cudnn_sdp",
    "cuda.flash_sdp",
    "cuda.fp16_bf16_reduction_math_sdp",
    "cuda.math_sdp",
    "cuda.matmul.allow_bf16_reduced_precision_reduction",
    "cuda.matmul.allow_fp16_accumulation",
    "cuda.matmul.allow_fp16_reduced_precision_reduction",
    "cuda.matmul.allow_tf32",
    "cuda.matmul.fp32_precision",
    "cuda.mem_efficient_sdp",
    "cuda.preferred_blas_library",
    "cuda.preferred_linalg_library",
    "cuda.preferred_rocm_fa_library",
    "cudnn.allow_tf32",
    "cudnn.benchmark",
    "cudnn.conv.fp32_precision",
    "cudnn.depthwise_kernel",
    "cudnn.deterministic",
    "cudnn.enabled",
    "cudnn.fp32_precision",
    "cudnn.rnn.fp32_precision",
    "fp32_precision",
    "mha.fastpath_enabled",
    "miopen.immediate",
    "mkldnn.conv.fp32_precision",
    "mkldnn.deterministic",
    "mkldnn.enabled",
    "mkldnn.fp32_precision",
    "mkldnn.matmul.fp32_precision",
    "mkldnn.rnn.fp32_precision",
    "nnpack.enabled",
    "python_native.cutedsl.enabled",
    "python_native.triton.enabled",
    "quantized.engine",
)

NEEDS_A_GPU = ("cuda.preferred_linalg_library",)
# Values to try in place of a text, until one is taken.
TEXTS = ("ieee", "tf32", "bf16", "onednn", "qnnpack", "none", "optimal", "native", "cudnn")


def reader_and_writer(variant):
    """Raises AttributeError where this torch has no such thing."""
    *places, name = variant.split(".")
    owner = torch.backends
    for place in places:
        owner = getattr(owner, place)
    for read, write in (
        ("{}_enabled", "enable_{}"),
        ("{}_allowed", "allow_{}"),
        ("get_{}", "set_{}"),
    ):
        if hasattr(owner, write.format(name)):
            return getattr(owner, read.format(name)), getattr(owner, write.format(name))
    if variant == "nnpack.enabled":
        return torch._C._get_nnpack_enabled, torch.backends.nnpack.set_flags
    if callable(found := getattr(owner, name)):
        return found, found
    return partial(getattr, owner, name), partial(setattr, owner, name)


def change(variant):
    """Whether another value was taken."""
    read, write = reader_and_writer(variant)
    before = read()
    named = getattr(type(before), "__members__", {}).values()
    texts = TEXTS if isinstance(before, str) else ()
    for value in [not before] if isinstance(before, bool) else [*texts, *named]:
        with suppress(Exception):
            write(value)
            if read() != before:
                return True
    return False


def unavailable(device, variant):
    try:
        reader_and_writer(variant)
    except AttributeError:
        return f"this torch has no torch.backends.{variant}"
    if device.type == "cpu" and variant in NEEDS_A_GPU:
        return f"torch.backends.{variant} has one value on a CPU"
    return None


def prepare(problem, inputs, weights, variant):
    def call():
        change(variant)
        return scaled_dot_product_attention(*inputs)

    return call
