"""Peak rates of GPUs by NVIDIA's data sheets. Imports no torch: the parent process reads them."""

TERA, GIGA = 1e12, 1e9


def _rates(*, fp32: float, tf32: float, half: float, gb_per_s: float) -> dict[str, float]:
    """TFLOP/s and GB/s by the names of measured peaks; `half` is fp16 and bf16, equal on these."""
    return {
        "gemm_fp32_flops_per_s": fp32 * TERA,
        "gemm_tf32_flops_per_s": tf32 * TERA,
        "gemm_bf16_flops_per_s": half * TERA,
        "gemm_fp16_flops_per_s": half * TERA,
        "copy_bytes_per_s": gb_per_s * GIGA,
    }


SPECIFIED = {
    "NVIDIA A10": _rates(fp32=31.2, tf32=62.5, half=125, gb_per_s=600),
    "NVIDIA A100-SXM4-40GB": _rates(fp32=19.5, tf32=156, half=312, gb_per_s=1555),
    "NVIDIA A100-SXM4-80GB": _rates(fp32=19.5, tf32=156, half=312, gb_per_s=2039),
    "NVIDIA B200": _rates(fp32=75, tf32=1100, half=2250, gb_per_s=8000),
    "NVIDIA GeForce RTX 4090": _rates(fp32=82.6, tf32=82.6, half=165.2, gb_per_s=1008),
    "NVIDIA H100 80GB HBM3": _rates(fp32=67, tf32=494.7, half=989.4, gb_per_s=3350),  # SXM
    "NVIDIA H100 PCIe": _rates(fp32=51, tf32=378, half=756, gb_per_s=2000),
    "NVIDIA H200": _rates(fp32=67, tf32=494.7, half=989.4, gb_per_s=4800),  # SXM
    "NVIDIA L4": _rates(fp32=30.3, tf32=60, half=121, gb_per_s=300),
    "NVIDIA L40S": _rates(fp32=91.6, tf32=183, half=362, gb_per_s=864),
}
"""By the driver's name of the GPU: variants of one chip differ in clock and memory.

Dense, at boost clock; the sheets also print rates with sparsity, twice as high. Sources: NVIDIA's
data sheets "A100 Tensor Core GPU", "H100 Tensor Core GPU", "H200 Tensor Core GPU", "A10", "L4",
"L40S", "Blackwell" (HGX B200, one of eight GPUs); RTX 4090: white paper "NVIDIA Ada GPU
Architecture", appendix A (fp16 and bf16 with fp32 accumulation).
"""


def specified(device_name: str | None) -> dict[str, float]:
    """Empty if the GPU is not in the table: a wrong peak would be worse than none."""
    return SPECIFIED.get(device_name or "", {})
