"""Compiles our Triton kernels for GPUs that are not here and prints what came out as JSON:
`python -m tests.impls._triton.compiled CHECK`, where CHECK is `compiled`, `launched` or `tuned`.

A process of its own, so that no other test meets triton, or the driver that stands in for a GPU's
here.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from itertools import count, groupby
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from attnbench.impls import Problem, load, make_inputs, make_weights
from attnbench.impls._triton import launch as _triton_launch
from attnbench.impls._triton import op as _triton_op
from attnbench.impls._triton import tune as _triton_tune
from attnbench.impls._triton import tuned as _triton_tuned
from attnbench.impls._triton.configs import KERNELS, Config, Kernel, candidates
from attnbench.impls._triton.jobs import Job, jobs
from attnbench.impls.problem import Dtype

ARCHITECTURES = ((8, 0), (9, 0), (10, 0))
FILLED = {
    "forward_kernel": (4,),
    "grad_q_kernel": (8,),
    "grad_kv_kernel": (7, 8),
}  # positions of the results among the arguments
AT_THE_EDGE: tuple[tuple[tuple[int, int], Kernel, int, int, int], ...] = (
    ((8, 0), "grad_kv", 2, 64, 1024),
    ((8, 0), "grad_kv", 2, 256, 1024),
    ((8, 0), "grad_q", 4, 64, 1),
    ((10, 0), "forward", 4, 256, 1024),
)


def chosen() -> Iterator[Job]:
    """The likeliest configurations of each kernel for heads 128 wide, per architecture, by
    pointers, with descriptors and specialized; and one of each other kind."""
    for capability in ARCHITECTURES:
        for kernel in KERNELS:
            listed = candidates(
                kernel, capability=capability, item_bytes=2, width=128, n_q=1024, causal=False
            )
            likeliest = {
                (config.descriptors, config.specialize): config for config in reversed(listed)
            }
            for config in likeliest.values():
                causal = not config.specialize
                yield Job(
                    kernel=kernel,
                    config=config,
                    capability=capability,
                    dtype="bf16",
                    d_k=128,
                    d_v=128,
                    causal=causal,
                )
    config = candidates(
        "forward", capability=(9, 0), item_bytes=4, width=64, n_q=1024, causal=True
    )[0]
    for tf32 in (False, True):
        yield Job(
            kernel="forward",
            config=config,
            capability=(9, 0),
            dtype="fp32",
            d_k=64,
            d_v=64,
            causal=False,
            tf32=tf32,
        )
    config = candidates(
        "grad_kv", capability=(9, 0), item_bytes=2, width=96, n_q=1024, causal=True
    )[0]
    yield Job(
        kernel="grad_kv",
        config=config,
        capability=(9, 0),
        dtype="fp16",
        d_k=72,
        d_v=96,
        causal=True,
        masked=True,
    )
    # Cuts that once spilled, or nearly do.
    for capability, kernel, item_bytes, width, n_q in AT_THE_EDGE:
        config = candidates(
            kernel, capability=capability, item_bytes=item_bytes, width=width, n_q=n_q, causal=True
        )[0]
        dtype: Dtype = "fp32" if item_bytes == 4 else "fp16"
        yield Job(
            kernel=kernel,
            config=config,
            capability=capability,
            dtype=dtype,
            d_k=width,
            d_v=width,
            causal=False,
        )


def compiled() -> list[dict[str, Any]]:
    return [asdict(job) | {"job": str(job)} | built(job) for job in chosen()]


def built(job: Job) -> dict[str, Any]:
    kernel = triton.compile(*job.arguments())
    ptx = kernel.asm["ptx"]
    found = next((name for name in ("tcgen05.mma", "wgmma.mma", "mma.sync") if name in ptx), "fma")
    return {
        "instruction": found,
        "copies_tiles": "cp.async.bulk.tensor" in ptx,
        "specializes": "setmaxnreg"
        in ptx,  # registers handed from the warps that copy to those that compute
        "shared_bytes": kernel.metadata.shared,
    } | usage(kernel.asm["cubin"])


def usage(cubin: bytes) -> dict[str, int]:
    """Registers of a thread, and bytes of stack, which is where registers are spilled to. The tool
    comes with triton.
    """
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        said = subprocess.run(
            [tool, "-res-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    numbers = re.search(r"REG:(\d+) STACK:(\d+)", said)
    assert numbers is not None, said
    return {"registers": int(numbers[1]), "stack_bytes": int(numbers[2])}


class NoGpu:
    """As much of a driver as Triton's launcher asks before it would start a kernel; what would
    start is noted in `launched`.
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


def launched() -> dict[str, Any]:
    """What a training step compiles on its way to the GPU, against what the jobs say that it
    compiles.
    """
    gpu = NoGpu((9, 0))
    driver.set_active(gpu)
    by_launch: dict[str, Any] = {}
    by_job: dict[str, Any] = {}

    def spy(launch: _triton_launch.Launch) -> None:
        def note(
            _key: Any,
            signature: Any,
            _device: Any,
            constants: Any,
            options: Any,
            attributes: Any,
            _warmup: Any,
        ) -> Any:
            by_launch[f"{launch.kernel.__name__} {launch.config}"] = plain(
                signature, constants, attributes
            )
            return compile_it(_key, signature, _device, constants, options, attributes, _warmup)

        compile_it = launch.kernel._do_compile
        with patch.object(launch.kernel, "_do_compile", note):
            start(launch)

    start = _triton_launch.Launch.start
    q, k, v = (
        torch.randn(1, 2, 256, 64, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)
    )
    by_pointers = [
        candidates(name, capability=(9, 0), item_bytes=2, width=64, n_q=256, causal=True)[-1]
        for name in KERNELS
    ]
    with patch.object(_triton_launch.Launch, "start", spy):
        for configs in (by_pointers, [described(name) for name in KERNELS]):
            o, _ = _triton_op.attention(
                q, k, v, None, 1.0, True, 0, False, *(config.numbers() for config in configs)
            )
            torch.autograd.grad(o, (q, k, v), torch.randn(1, 2, 256, 64, dtype=torch.bfloat16))
    for job in jobs((9, 0), ("bf16",)):
        name = f"{job.kernel}_kernel {job.config}"
        if job.d_k == 64 and job.causal and name in by_launch:
            source = job.arguments()[0]
            by_job[name] = plain(source.signature, source.constants, source.attrs)
    return {"launch": by_launch, "job": by_job, "loaded": gpu.launched}


class Event:
    """Says that every launch was faster than the one before."""

    clock = count(1000.0, -1)

    def __init__(self, *, enable_timing: bool) -> None: ...

    def record(self) -> None: ...

    def synchronize(self) -> None: ...

    def elapsed_time(self, _end: object) -> float:
        return next(self.clock)


def tuned() -> dict[str, Any]:
    """What `prepare` does on a GPU that has too little shared memory for some candidates: all that
    is done there but for the kernels.
    """
    driver.set_active(NoGpu((9, 0), shared_bytes=100 << 10))
    problem = Problem(
        batch=1,
        seq_len=256,
        d_model=128,
        heads=2,
        dtype="bf16",
        causal=True,
        passes="forward+backward",
        scope="layer",
    )
    short = replace(problem, seq_len=64, kv_seq_len=64, passes="forward", scope="core")
    narrow = replace(problem, d_k=20, d_v=20, passes="forward", scope="core")
    failing, lying = described("grad_q"), described("grad_kv")
    with (
        patch.object(torch.cuda, "get_device_capability", lambda _device: (9, 0)),
        patch.object(torch.cuda, "device", lambda _device: nullcontext()),
        patch.object(torch.cuda, "Event", Event),
        TemporaryDirectory() as folder,
    ):
        found = {"timed": prepared(problem), "only": prepared(short), "narrow": prepared(narrow)}
        found["broken"] = prepared(problem, failing=failing, lying=lying)
        path = Path(folder) / "tuned.json"
        path.write_text('{"choices": []}')
        names = {"run": "a run", "gpu": "a GPU", "triton": triton.__version__}
        _triton_tuned.merge(
            [_triton_tuned.choice_of(problem, (9, 0), found["timed"]["facts"], **names)], path
        )
        with patch.object(_triton_tune, "read", lambda: _triton_tuned.read(path)):
            found["table"] = prepared(problem)
            found["stale"] = prepared(
                problem, failing=Config(**found["timed"]["facts"]["configuration"]["forward"])
            )
    return found | {"failing": failing, "lying": lying}


def described(kernel: Kernel) -> Config:
    listed = candidates(kernel, capability=(9, 0), item_bytes=2, width=64, n_q=256, causal=True)
    return next(config for config in listed if config.descriptors)


def prepared(
    problem: Problem, *, failing: Config | None = None, lying: Config | None = None
) -> dict[str, Any]:
    """What was tried, and what the call then used; a compiler that fails, and a kernel that is
    wrong, on request.
    """
    device = torch.device("cpu")
    inputs = make_inputs(problem, device, seed=1)
    weights = make_weights(problem, device, seed=2) if problem.scope == "layer" else None
    starts: list[Config] = []
    start = _triton_launch.Launch.start

    def noted(launch: _triton_launch.Launch) -> None:
        if launch.config == failing:
            raise RuntimeError("PassManager::run failed\nand more")
        start(launch)
        starts.append(launch.config)
        for position in FILLED[launch.kernel.__name__]:
            launch.arguments[position].fill_(7 if launch.config == lying else 1)

    with patch.object(_triton_launch.Launch, "start", noted):
        call = load("triton").prepare(problem, inputs, weights)
        tried = [config for config, _ in groupby(starts)]
        starts.clear()
        output = call()
        if problem.backward:
            output.sum().backward()
    return {
        "tried": tried,
        "used": starts,
        "facts": call.facts,
        "shape": output.shape,
        "gradients": inputs.query.grad is not None,
    }


def plain(signature: Any, constants: Any, attributes: Any) -> list[Any]:
    numbered = [
        sorted((list(path), str(value)) for path, value in table.items() if value != [])
        for table in (constants, attributes)
    ]
    return [{name: str(kind) for name, kind in signature.items()}, *numbered]


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(globals()[sys.argv[1]](), default=Config.numbers))
