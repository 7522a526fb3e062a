"""Prints, as JSON, the keys in Triton's cache of the kernels that a training step launches, and of
those that an audit compiles: `python -m tests.impls._triton.warmed shown`.
"""

import json
import sys
from typing import Any
from unittest.mock import patch

import torch
import triton
from triton.runtime import driver

from attnbench.impls._triton import launch, op
from attnbench.impls._triton.configs import KERNELS, candidates
from attnbench.impls._triton.jobs import jobs
from tests.impls._triton.compiled import NoGpu


def shown() -> dict[str, list[str]]:
    """Of one configuration per kernel, for fp32, which compiles fastest."""
    shape = {"capability": (9, 0), "item_bytes": 4, "width": 64, "n_q": 256, "causal": True}
    configs = [candidates(name, **shape)[-1] for name in KERNELS]
    q, k, v = (torch.randn(1, 2, 256, 64, requires_grad=True) for _ in range(3))
    keys: list[str] = []
    start = launch.Launch.start

    def noted(one: launch.Launch) -> None:
        compile_it = one.kernel._do_compile

        def note(*arguments: Any) -> Any:
            made = compile_it(*arguments)
            keys.append(made.hash)
            return made

        with patch.object(one.kernel, "_do_compile", note):
            start(one)

    driver.set_active(NoGpu((9, 0)))
    with patch.object(launch.Launch, "start", noted):
        numbers = (config.numbers() for config in configs)
        o, _ = op.attention(q, k, v, None, 1.0, True, 0, False, *numbers)
        torch.autograd.grad(o, (q, k, v), torch.randn_like(o))
    wanted = {
        job.kernel: job
        for job in jobs((9, 0), ("fp32",))
        if job.causal and job.d_k == 64 and job.config == configs[KERNELS.index(job.kernel)]
    }
    audited = [triton.compile(*wanted[name].arguments()).hash for name in KERNELS]
    return {"launched": keys, "audited": audited}


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(globals()[sys.argv[1]]()))
