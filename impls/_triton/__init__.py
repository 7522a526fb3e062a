"""Our own attention kernels in Triton: the kernels, their configurations, tuning, launching."""
