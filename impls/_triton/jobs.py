"""What `triton.compile` needs to compile our kernels for a GPU that is not here. Imports triton."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor
from triton.backends.compiler import GPUTarget

from ..backend import TORCH_DTYPE
from ..problem import ITEM_BYTES, Dtype
from . import launch
from .configs import FEW_QUERIES_TABLES, KERNELS, Config, Kernel, table_for

PAGE = 16  # keys of a page, as vLLM has them
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
    band: str = ""
    softcap: bool = False
    sinks: bool = False
    paged: bool = False
    tf32: bool = False

    def launch(self) -> launch.Launch:
        """As the operator makes it, from tensors without memory.

        Lengths do not matter: the compiled kernel serves all of them.
        """

        def tensor(*shape: int, dtype: torch.dtype = TORCH_DTYPE[self.dtype]) -> Tensor:
            return torch.empty(shape, dtype=dtype, device="meta")

        n, heads, config = 256, 2, self.config
        pages, rows = (n // PAGE, PAGE) if self.paged else (1, n)
        q, k = tensor(1, heads, n, self.d_k), tensor(pages, heads, rows, self.d_k)
        v, o = tensor(pages, heads, rows, self.d_v), tensor(1, heads, n, self.d_v)
        paged = launch.Paged(tensor(1, pages, dtype=torch.int32), n) if self.paged else None
        lse = tensor(1, heads, n, dtype=torch.float32)
        mask = tensor(1, n, dtype=torch.bool) if self.masked else None
        sinks = tensor(heads) if self.sinks else None
        setting = launch.Setting(
            scale=1.0, causal=self.causal, causal_offset=0, tf32=self.tf32,
            softcap=float(self.softcap), band=self.band, window=n,
        )  # fmt: skip
        if self.kernel == "forward":
            return launch.forward(
                q, k, v, mask, o, lse, setting=setting, config=config, sinks=sinks, paged=paged
            )
        if self.kernel == "grad_q":
            return launch.grad_q(
                q, k, v, mask, o, o, lse, lse, q, setting=setting, config=config, sinks=sinks,
                sink_terms=lse if self.sinks else None,
            )  # fmt: skip
        return launch.grad_kv(q, k, v, mask, o, lse, lse, k, v, setting=setting, config=config)

    def arguments(self) -> tuple[object, GPUTarget, dict[str, object]]:
        """Source, target and options."""
        made, (major, minor) = self.launch(), self.capability
        target = GPUTarget("cuda", 10 * major + minor, 32)
        return made.source(target), target, made.options


def jobs(capability: tuple[int, int], dtypes: tuple[Dtype, ...] = DTYPES) -> Iterator[Job]:
    """Every listed configuration at its widest head, causal or not: what a run on such a GPU may
    have to compile.
    """
    for dtype, kernel, causal in product(dtypes, KERNELS, (False, True)):
        item_bytes = ITEM_BYTES[dtype]
        few_queries = FEW_QUERIES_TABLES[item_bytes]
        for table in (table_for(capability, item_bytes, causal=causal), few_queries):
            for width, configs in table.get(kernel, {}).items():
                for config in configs:
                    yield Job(
                        kernel=kernel,
                        config=config,
                        capability=capability,
                        dtype=dtype,
                        d_k=width,
                        d_v=width,
                        causal=causal,
                    )
