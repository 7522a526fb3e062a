"""Compiles our Triton kernels for GPUs that are not here and prints the results as JSON: `python -m
tests.impls._triton.compiled CHECK`, where CHECK is `compiled`, `refusals` or `tuned`.

A process of its own, so that no other test meets triton or the driver that replaces a GPU's here.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
import torch
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from attnbench.impls import Problem, load, make_inputs, make_weights
from attnbench.impls._triton import launch, tune
from attnbench.impls._triton import tuned as table
from attnbench.impls._triton.configs import BANDS, KERNELS, Config, Kernel, candidates
from attnbench.impls._triton.jobs import Job
from attnbench.impls.problem import Dtype
from tests.fakes.cuda import FakeGpu, HandClock, fake_cuda, turned_by_hand

ARCHITECTURES = ((8, 0), (9, 0), (10, 0))
# positions of the results among the arguments
FILLED = {
    "forward_kernel": (8, 9),
    "hopper_forward_kernel": (3, 4),
    "grad_q_kernel": (10, 11),
    "grad_kv_kernel": (9, 10),
}
# Configurations that once spilled, or nearly do: capability, kernel, item_bytes, width, n_q
AT_THE_EDGE: tuple[tuple[tuple[int, int], Kernel, int, int, int], ...] = (
    ((8, 0), "grad_kv", 2, 64, 1024),
    ((8, 0), "grad_kv", 2, 256, 1024),
    ((8, 0), "grad_q", 4, 64, 1),
    ((10, 0), "forward", 4, 256, 1024),
)


def listed(
    kernel: Kernel,
    capability: tuple[int, int] = (9, 0),
    item_bytes: int = 2,
    width: int = 64,
    n_q: int = 1024,
    *,
    causal: bool = True,
) -> tuple[Config, ...]:
    sizes = {"item_bytes": item_bytes, "width": width, "n_q": n_q}
    return candidates(kernel, capability=capability, causal=causal, **sizes)


def job(
    kernel: Kernel,
    config: Config,
    capability: tuple[int, int] = (9, 0),
    dtype: Dtype = "bf16",
    width: int = 64,
    **changes: Any,
) -> Job:
    shape = {"d_k": width, "d_v": width, "causal": False} | changes
    return Job(kernel=kernel, config=config, capability=capability, dtype=dtype, **shape)


def chosen() -> Iterator[Job]:
    """For heads 128 wide, per architecture and kernel, the first configuration by pointers, with
    descriptors and specialized; and one job of each other kind.
    """
    for capability in ARCHITECTURES:
        for kernel in KERNELS:
            found = reversed(listed(kernel, capability, width=128, causal=False))
            first = {
                (config.descriptors, config.specialize): config
                for config in found
                if not config.gluon  # these have a check of their own
            }
            for config in first.values():
                yield job(kernel, config, capability, width=128, causal=not config.specialize)
            for band in BANDS:
                more = {"band": band, "softcap": True, "sinks": True, "causal": band == "local"}
                config = listed(kernel, capability, width=128, causal=False)[0]
                yield job(kernel, config, capability, width=128, **more)
        config = listed("forward", capability, width=128)[-1]
        yield job("forward", config, capability, width=128, causal=True, paged=True)
    for tf32 in (False, True):
        yield job("forward", listed("forward", item_bytes=4)[0], dtype="fp32", tf32=tf32)
    narrow = {"d_k": 72, "d_v": 96, "causal": True, "masked": True}
    yield job("grad_kv", listed("grad_kv", width=96)[-1], dtype="fp16", **narrow)
    for capability, kernel, item_bytes, width, n_q in AT_THE_EDGE:
        dtype: Dtype = "fp32" if item_bytes == 4 else "fp16"
        config = listed(kernel, capability, item_bytes, width, n_q)[0]
        yield job(kernel, config, capability, dtype, width)


def compiled() -> list[dict[str, Any]]:
    return [asdict(job) | {"job": str(job)} | built(job) for job in chosen()]


def built(job: Job) -> dict[str, Any]:
    kernel = triton.compile(*job.arguments())
    ptx = kernel.asm["ptx"]
    found = next((name for name in ("tcgen05.mma", "wgmma.mma", "mma.sync") if name in ptx), "fma")
    return {
        "instruction": found,
        "copies_tiles": "cp.async.bulk.tensor" in ptx,
        # registers handed from the warps that copy to those that compute
        "specializes": "setmaxnreg" in ptx,
        "shared_bytes": kernel.metadata.shared,
    }


def refusals() -> dict[str, list[Any]]:
    """The forward kernel that is launched, and why not the one in Gluon."""
    q, k, v = (torch.randn(2, 2, n, 64).half() for n in (37, 50, 50))
    found = {
        "taken": asked(q, k, v),
        "a key mask": asked(q, k, v, torch.ones(2, 50, dtype=torch.bool)),
        "fp32": asked(q.float(), k.float(), v.float()),
        "wide heads": asked(*(x.repeat_interleave(3, 3) for x in (q, k, v))),
        "columns apart": asked(*(x.mT.contiguous().mT for x in (q, k, v))),
        "one for all heads": asked(*(x[:, :1].expand_as(x) for x in (q, k, v))),
    }
    with patch.object(launch, "_missing_for_gluon", lambda: "Triton 3 has not the Gluon"):
        return found | {"no Gluon": asked(q, k, v)}


def asked(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> list[Any]:
    o, lse = torch.empty_like(q), torch.empty(q.shape[:3])
    setting = launch.Setting(scale=0.125, causal=True, causal_offset=13, tf32=False)
    gluon = next(config for config in listed("forward") if config.gluon)
    made = launch.forward(q, k, v, mask, o, lse, setting=setting, config=gluon)
    return [made.kernel.__name__, made.why_not]


class NoGpu:
    """The part of a driver that Triton's launcher uses before it starts a kernel.

    `launched` lists the kernels that it would start.
    """

    def __init__(self, capability: tuple[int, int], shared_bytes: int = 227 << 10) -> None:
        self.shared_bytes = shared_bytes
        self.target = GPUTarget("cuda", 10 * capability[0] + capability[1], 32)
        self.launched: list[str] = []
        self.utils = self

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _device: int) -> int:
        return 0

    def get_device_properties(self, _device: int) -> dict[str, int]:
        return {
            "max_shared_mem": self.shared_bytes,
            "max_num_regs": 65536,
            "multiprocessor_count": 132,
            "warpSize": 32,
        }

    def load_binary(self, name: str, *_others: Any) -> tuple[int, int, int, int, int]:
        self.launched.append(name)
        return 1, 1, 128, 0, 1024

    def launcher_cls(self, *_others: Any) -> Any:
        return lambda *_arguments: None


def tuned() -> dict[str, Any]:
    """What `prepare` does on a GPU with too little shared memory for some candidates, on which each
    candidate is faster than those before; the kernels themselves do not run.
    """
    driver.set_active(NoGpu((9, 0), shared_bytes=100 << 10))
    shape: dict[str, Any] = {"batch": 1, "seq_len": 256, "d_model": 128, "heads": 2}
    problem = Problem(**shape, dtype="bf16", causal=True, passes="forward+backward", scope="layer")
    narrow = replace(problem, d_k=20, d_v=20, passes="forward", scope="core")
    core = replace(problem, passes="forward", scope="core")
    failing, wrong = described("grad_q"), described("grad_kv")
    last, clock = listed("forward", n_q=256)[-1], HandClock()
    with (
        pytest.MonkeyPatch.context() as patched,
        fake_cuda(FakeGpu(clock)) as gpu,
        TemporaryDirectory() as folder,
    ):
        turned_by_hand(clock, patched, "attnbench.impls")
        gpu.kernel_s["fill_"] = 0.0  # by which kernels get results here

        def found(problem: Problem, **how: Any) -> dict[str, Any]:
            tune.choices.cache_clear()
            return prepared(problem, gpu, **how)

        load("triton").compile_ahead(problem, torch.device("cuda", 0))
        ahead = cubins()
        made = {"timed": found(problem), "cubins": [ahead, cubins()]}
        made["narrow"] = found(narrow)
        made["paged"] = found(replace(core, page=16))
        for name in ("portable", "pointers"):
            made[name] = found(core, backend=f"triton:{name}")
        made["broken"] = found(problem, failing=failing, wrong=wrong)
        made["serialized"] = found(core, serialized=(last,))
        path = Path(folder) / "tuned.json"
        facts = made["timed"]["facts"]
        names = {"run": "a run", "gpu": "a GPU", "triton": triton.__version__}
        kind = asdict(table.kind_of(problem, (9, 0)))
        choice = kind | {"configuration": facts["configuration"]} | names
        path.write_text(json.dumps({"choices": [choice]}))
        with patch.object(tune, "read", lambda: table.read(path)):
            made["table"] = found(problem)
        try:
            found(core, breaking=last)
        except RuntimeError as error:
            made["breaks"] = str(error)
        gpu.broken = ""
        made["after_a_break"] = found(core)
    return made | {"failing": failing, "wrong": wrong}


def cubins() -> int:
    """How many kernels are in Triton's cache."""
    return len(list(Path(knobs.cache.dir).glob("*/*.cubin")))


def described(kernel: Kernel) -> Config:
    found = (config for config in listed(kernel, n_q=256) if config.descriptors)
    return next(config for config in found if not config.gluon)


SLOWEST_S, STEP_S = 200e-6, 10e-6


def prepared(
    problem: Problem,
    gpu: FakeGpu,
    *,
    backend: str = "triton",
    failing: Config | None = None,
    wrong: Config | None = None,
    breaking: Config | None = None,
    serialized: Sequence[Config] = (),
) -> dict[str, Any]:
    """The configurations that were launched, and those that the call used.

    `failing` does not compile, `wrong` computes something else, and after `breaking` the GPU
    refuses everything. The machine code of those in `serialized` is said to be.
    """
    device = torch.device("cuda", 0)
    inputs = make_inputs(problem, device, seed=1)
    weights = make_weights(problem, device, seed=2) if problem.scope == "layer" else None
    starts: list[tuple[Kernel, Config]] = []
    start = launch.Launch.start

    def noted(one: launch.Launch) -> None:
        if one.config == failing:
            raise RuntimeError("PassManager::run failed\nand more")
        start(one)
        kernel: Any = one.kernel.__name__.removesuffix("_kernel").removeprefix("hopper_")
        starts.append((kernel, one.config))
        place = listed(kernel, n_q=256).index(one.config)
        gpu.launch(kernel, SLOWEST_S - place * STEP_S)
        for position in FILLED[one.kernel.__name__]:
            one.arguments[position].fill_(7 if one.config == wrong else 1)
        if one.config == breaking:
            gpu.broken = "CUDA error: an illegal memory access was encountered"

    def read(asm: Any) -> bool:
        return bool(codes[id(asm)] in serialized)

    codes: dict[int, Config] = {}
    compiled = tune.compiled

    def known(one: launch.Launch) -> Any:
        made = compiled(one)
        codes[id(made.asm)] = one.config
        return made

    with (
        patch.object(launch.Launch, "start", noted),
        patch.object(tune, "compiled", known),
        patch.object(tune, "serialized", read),
    ):
        call = load(backend).prepare(problem, inputs, weights)
        tried = [config for _, config in dict.fromkeys(starts)]
        starts.clear()
        output = call()
        if problem.backward:
            output.sum().backward()
    return {
        "tried": tried,
        "used": [config for _, config in starts],
        "facts": call.facts,
        "shape": output.shape,
        "gradients": inputs.query.grad is not None,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(globals()[sys.argv[1]](), default=Config.numbers))
