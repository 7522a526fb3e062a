"""Environment variables that change numbers; run.json records these and no others."""

SETTINGS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_SCALE_LAUNCH_QUEUES",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_ARENA_MAX",
    "LD_PRELOAD",
    "NVIDIA_TF32_OVERRIDE",
    "TRITON_INTERPRET",
)

CHOICE = "CUDA_VISIBLE_DEVICES"
"""Which of several GPUs is meant, not how it is used."""
