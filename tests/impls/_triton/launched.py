"""Launches by Triton's own launcher over a driver that computes nothing, and what is wrong with
them, as JSON: `python -m tests.impls._triton.launched FOLDER every 9 bf16`, of compute capability
9.0, or `FOLDER broken`.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest
import torch

from attnbench.impls import Problem
from attnbench.impls._triton import launch, tune
from attnbench.impls._triton.configs import KERNELS, Config, candidates
from attnbench.impls._triton.jobs import PAGE, Job, jobs
from attnbench.impls._triton.safe_code import why_unsafe
from attnbench.impls.backend import TORCH_DTYPE
from attnbench.impls.problem import ITEM_BYTES, Dtype
from tests.fakes.cuda import FakeGpu, HandClock, fake_cuda, turned_by_hand
from tests.fakes.libcuda.library import FakeLibcuda
from tests.fakes.libcuda.rules import illegal, parameter_bytes, unlaunchable
from tests.impls._triton import compiled
from tests.impls._triton.conftest import in_pages

# batch, heads, kv_heads, n_q, n_kv: edges of tiles, many tiles, a step of decode
SHAPES = ((2, 4, 2, 333, 257), (1, 2, 1, 2048, 2048))
DECODE = (3, 8, 2, 1, 1000)
ORDERS = ("heads", "model")


def every(folder: Path, major: int, dtype: Dtype) -> dict[str, Any]:
    """`faults` by launch, and how many there were of each kernel."""
    cuda = FakeLibcuda(folder, major)
    faults: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for job in (*jobs((major, 0), (dtype,)), *with_all((major, 0), dtype)):
        if not job.causal and not job.config.gluon:
            continue  # the same launch as of a causal one
        shapes = (DECODE,) if job.config.block_q == 16 and job.kernel != "grad_kv" else SHAPES
        for shape, order in product(shapes, ORDERS):
            made = launch_of(job, shape, order)
            asm = tune.compiled(made).asm
            cuda.expect(asm["ptx"])
            made.start()
            found = list(wrong(made, asm, *cuda.told(), major))
            if found:
                faults[f"{job} {shape} {order}"] = found
            name = made.kernel.__name__
            counts[name] = counts.get(name, 0) + 1
    return {"faults": faults, "counts": counts}


def with_all(capability: tuple[int, int], dtype: Dtype) -> Iterator[Job]:
    """A job of each kernel with all that a problem may have."""
    for kernel in KERNELS:
        sizes = {"item_bytes": ITEM_BYTES[dtype], "width": 64, "n_q": 1024}
        config = candidates(kernel, capability=capability, causal=True, **sizes)[0]
        shape = {"d_k": 64, "d_v": 64, "causal": True}
        more = {"band": "local", "softcap": True, "sinks": True}
        of = {"kernel": kernel, "capability": capability, "dtype": dtype, **shape, **more}
        yield Job(config=config, **of)
        if kernel == "forward":
            yield Job(config=config.by_pointers(), **of, paged=True)


def launch_of(job: Job, shape: Sequence[int], order: str) -> launch.Launch:
    """On tensors that lie in memory as inputs of attnbench do (`make_inputs`)."""
    batch, heads, kv_heads, n_q, n_kv = shape

    def tensor(heads: int, tokens: int, width: int, order: str = order) -> torch.Tensor:
        sizes = (batch, heads, tokens) if order == "heads" else (batch, tokens, heads)
        made = torch.empty(*sizes, width, dtype=TORCH_DTYPE[job.dtype])
        return made if order == "heads" else made.transpose(1, 2)

    q, k = tensor(heads, n_q, job.d_k), tensor(kv_heads, n_kv, job.d_k)
    v, o = tensor(kv_heads, n_kv, job.d_v), tensor(heads, n_q, job.d_v, "model")
    lse = torch.empty(batch, heads, n_q)
    offset = max(n_kv - n_q, 0)
    setting = launch.Setting(
        scale=0.1, causal=job.causal, causal_offset=offset, tf32=False,
        softcap=float(job.softcap), band=job.band, window=100,
    )  # fmt: skip
    how: dict[str, Any] = {"setting": setting, "config": job.config}
    if job.paged:
        k, v, table = in_pages(k, v, PAGE)
        how["paged"] = launch.Paged(table, n_kv)
    sinks = torch.empty(heads, dtype=q.dtype) if job.sinks else None
    if job.kernel == "forward":
        return launch.forward(q, k, v, None, o, lse, sinks=sinks, **how)
    do, delta = torch.empty_like(o), torch.empty_like(lse)
    dq, dk, dv = map(torch.empty_like, (q, k, v))
    if job.kernel == "grad_q":
        terms = torch.empty_like(lse) if job.sinks else None
        how |= {"sinks": sinks, "sink_terms": terms}
        return launch.grad_q(q, k, v, None, o, do, lse, delta, dq, **how)
    return launch.grad_kv(q, k, v, None, do, lse, delta, dk, dv, **how)


def wrong(
    made: launch.Launch,
    asm: Any,
    maps: list[dict[str, Any]],
    launches: list[dict[str, Any]],
    major: int,
) -> Iterator[str]:
    """What the GPU would refuse, misread or wait for."""
    if reason := why_unsafe(asm):
        yield reason
    for one in maps:
        yield from illegal(one)
    if len(launches) != 1:
        yield f"{len(launches)} launches"
        return
    (one,) = launches
    yield from unlaunchable(one, major)
    if one["grid"][0] != made.programs:
        yield f"{one['grid'][0]} blocks, wanted {made.programs}"
    ptx = asm["ptx"]
    if f".reqntid {one['block'][0]}\n" not in ptx.replace(", 1, 1", ""):
        yield f"{one['block'][0]} threads, which is not what the PTX requires"
    sizes = parameter_bytes(ptx)
    told = list(zip(sizes, one["parameters"], strict=True))
    wanted = [*expected(made, maps), (8, 0), (8, 0)]  # and two scratch buffers, which it has not
    if told != wanted:
        yield f"parameters {told}, wanted {wanted}"


def expected(made: launch.Launch, maps: Sequence[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Bytes and value of each parameter, in the order of the arguments."""
    numbers = iter(maps)
    for argument in flattened(made.arguments):
        if isinstance(argument, torch.Tensor):
            yield 8, argument.data_ptr()
        elif hasattr(argument, "base"):  # a descriptor
            one, base = next(numbers), argument.base
            fits = one["address"] == base.data_ptr() and one["dimensions"] == [*base.shape[::-1]]
            yield 128, one["map"] if fits else -1
            yield from ((4, size) for size in argument.shape)
            yield from ((8, stride) for stride in argument.strides)
        elif isinstance(argument, float):
            yield 4, int(torch.tensor(argument, dtype=torch.float32).view(torch.int32))
        elif argument is not None:
            yield 4, argument


def flattened(arguments: Sequence[Any]) -> Iterator[Any]:
    """Without the strides that are 1, which are compiled in."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from (one for one in argument if one != 1)
        else:
            yield argument


def broken(folder: Path) -> dict[str, Any]:
    """`prepare` where the second candidate breaks the context, and after that in a new process."""
    problem = Problem(batch=1, seq_len=256, d_model=128, heads=2, dtype="bf16", causal=True)
    cuda, clock = FakeLibcuda(folder), HandClock()
    start = launch.Launch.start
    gpu = FakeGpu(clock)

    def started(one: launch.Launch) -> None:
        cuda.expect(tune.compiled(one).asm["ptx"])
        try:
            start(one)
        except RuntimeError as error:
            gpu.broken = str(error)
            raise

    found: dict[str, Any] = {}
    with (
        pytest.MonkeyPatch.context() as patched,
        fake_cuda(gpu),
        patch.object(launch.Launch, "start", started),
    ):
        turned_by_hand(clock, patched, "attnbench.impls")
        gpu.kernel_s["fill_"] = 0.0
        cuda.break_in(2)
        try:
            compiled.prepared(problem, gpu)
        except RuntimeError as error:
            found["reason"] = str(error)
        cuda.break_in(-1)
        gpu.broken = ""
        tune.choices.cache_clear()
        found["facts"] = compiled.prepared(problem, gpu)["facts"]
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, _, *kind = sys.argv[1:]
    found = (
        every(Path(folder), int(kind[0]), cast("Dtype", kind[1])) if kind else broken(Path(folder))
    )
    print(json.dumps(found, default=Config.numbers))
