"""Sets one thing of torch.backends in its calls: each that it has, in a backend of its own."""

from torch.nn.functional import scaled_dot_product_attention

from tests.fakes.cheats._torch_backends import settable

CONTAINED = "the setting is one of its own process"
VARIANTS = (  # all that a walk through torch 2.13 finds
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


def unavailable(device, variant):
    if variant not in settable():
        return f"this torch has no torch.backends.{variant}"
    if device.type == "cpu" and variant in NEEDS_A_GPU:
        return f"torch.backends.{variant} has one value on a CPU"
    return None


def prepare(problem, inputs, weights, variant):
    thing = settable()[variant]

    def call():
        thing.change()
        return scaled_dot_product_attention(*inputs)

    return call
