"""Everything that `triton.compile` needs to compile our kernels for a GPU that is not there.
Importing this imports triton.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from triton.backends.compiler import GPUTarget

from ..backend import TORCH_DTYPE
from ..problem import Dtype
from . import launch
from .configs import FEW, KERNELS, Config, Kernel, table_for

DTYPES: tuple[Dtype, ...] = ("bf16", "fp16", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One kernel in one configuration for one kind of problem: triton.compile(*job.arguments())."""

    kernel: Kernel
    config: Config
    capability: tuple[int, int]
    dtype: Dtype
    d_k: int
    d_v: int
    causal: bool
    masked: bool = False
    tf32: bool = False

    def launch(self) -> launch.Launch:
        """As the operator makes it, of tensors that have no memory. Lengths do not matter: what is
        compiled serves all of them.
        """

        def tensor(*shape: int, dtype: torch.dtype = TORCH_DTYPE[self.dtype]) -> Tensor:
            return torch.empty(shape, dtype=dtype, device="meta")

        n, heads = 256, 2
        q, k = tensor(1, heads, n, self.d_k), tensor(1, heads, n, self.d_k)
        v, o = tensor(1, heads, n, self.d_v), tensor(1, heads, n, self.d_v)
        lse = tensor(1, heads, n, dtype=torch.float32)
        mask = tensor(1, n, dtype=torch.bool) if self.masked else None
        setting = launch.Setting(scale=1.0, causal=self.causal, causal_offset=0, tf32=self.tf32)
        if self.kernel == "forward":
            return launch.forward(q, k, v, mask, o, lse, setting=setting, config=self.config)
        if self.kernel == "grad_q":
            return launch.grad_q(
                q, k, v, mask, o, o, lse, lse, q, setting=setting, config=self.config
            )
        return launch.grad_kv(q, k, v, mask, o, lse, lse, k, v, setting=setting, config=self.config)

    def arguments(self) -> tuple[object, GPUTarget, dict[str, object]]:
        """Source, target and options."""
        made = self.launch()
        return (
            made.source(),
            GPUTarget("cuda", 10 * self.capability[0] + self.capability[1], 32),
            made.options,
        )


def jobs(capability: tuple[int, int], dtypes: tuple[Dtype, ...] = DTYPES) -> Iterator[Job]:
    """Every listed configuration at the widest head it is for, causal or not: what a run on such a
    GPU may have to compile.
    """
    for dtype in dtypes:
        item_bytes = 4 if dtype == "fp32" else 2
        for kernel in KERNELS:
            for causal in (False, True):
                for table in (table_for(capability, item_bytes, causal=causal), FEW[item_bytes]):
                    for width, config in (
                        (width, config)
                        for width, configs in table.get(kernel, {}).items()
                        for config in configs
                    ):
                        yield Job(
                            kernel=kernel,
                            config=config,
                            capability=capability,
                            dtype=dtype,
                            d_k=width,
                            d_v=width,
                            causal=causal,
                        )
