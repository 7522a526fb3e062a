"""Launch each listed configuration of the Triton kernels alone, and compare what it computes.

    python -m tests.gpu_day.launches [--only WORD] [--seconds S] [--tokens N]
                                     [--interpret | --compile]

A child launches one after the other; if one hangs the child ends itself after `seconds`, with the
place in the code on standard error, and a new child goes on with the next. A line for each says how
long the launch took and how far its results are off, as a ratio of their norm. Exit code 1: one
hung, failed or was off. Without a GPU `--interpret` runs them by Triton's interpreter, which has
none for Gluon, and `--compile` compiles them for compute capability 9.0 and reads their code.
"""

import argparse
import faulthandler
import os
import subprocess
import sys
from math import log2
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from attnbench.impls._triton.jobs import Job
    from attnbench.impls.problem import Dtype

LIMIT = 2.0**-6  # of the distance to fp32, relative to the norm: bf16 rounds to 2**-9
SCALE = 0.125


def main() -> None:
    options = parse()
    if options.interpret:
        os.environ["TRITON_INTERPRET"] = "1"
    if options.start is not None:
        sys.exit(launch_all(options))
    place, failed = 0, 0
    while True:
        begin = place
        words = [*sys.argv[1:], "--start", str(place)]
        command = [sys.executable, "-m", "tests.gpu_day.launches", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for line in child.stdout:
                print(line, end="", flush=True)
                place += line.startswith("launching ")
                failed += " failed: " in line
        if child.returncode == 0:
            break
        failed += 1
        print(f"ended with {child.returncode}", flush=True)
        if child.returncode < 0 or place == begin:  # interrupted, or nothing is launched any more
            break
    sys.exit(bool(failed))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu_day.launches", description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names, such as gluon or grad_q")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--interpret", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--start", type=int, help="in a child: the number of the first")
    return parser.parse_args()


def launch_all(options: argparse.Namespace) -> int:
    """Those of compute capability 9.0 without a GPU."""
    import torch

    from attnbench.impls._triton.jobs import jobs

    on_gpu = not (options.interpret or options.compile)
    capability = torch.cuda.get_device_capability() if on_gpu else (9, 0)
    # Triton's interpreter multiplies bf16 as integers
    dtype: Dtype = "fp16" if options.interpret else "bf16"
    listed = ((named(job), job) for job in jobs(capability, (dtype,)))
    chosen = [(name, job) for name, job in listed if options.only in name]
    failed = False
    for name, job in chosen[options.start :]:
        print(f"launching {name}", flush=True)
        faulthandler.dump_traceback_later(options.seconds, exit=True)
        try:
            if options.compile:
                found = compiled(job)
            else:
                found = launched(job, options.tokens, "cuda" if on_gpu else "cpu")
        except Exception as error:  # noqa: BLE001 - the next ones are launched too
            found = f"failed: {type(error).__name__}: {str(error).splitlines()[0]}"
            failed = True
        faulthandler.cancel_dump_traceback_later()
        print(f"  {name} {found}", flush=True)
        if failed and on_gpu:
            torch.cuda.synchronize()  # a broken context ends this child
    return 0


def named(job: "Job") -> str:
    config = job.config
    options = [name for name in ("descriptors", "specialize", "gluon") if getattr(config, name)]
    tile = f"{config.block_q}x{config.block_kv} w{config.warps} s{config.stages}"
    causal = "causal" if job.causal else "full"
    return " ".join([job.kernel, f"d{job.d_k}", causal, tile, *(options or ["pointers"])])


def compiled(job: "Job") -> str:
    """Raises ValueError if it would hang or race, and whatever Triton raises."""
    import triton

    from attnbench.impls._triton.safe_code import why_unsafe

    if reason := why_unsafe(triton.compile(*job.arguments()).asm):
        raise ValueError(reason)
    return "ok: compiled"


def launched(job: "Job", tokens: int, device: str) -> str:
    """Raises ValueError if a result is off, and whatever Triton and CUDA raise."""
    import torch

    made, results = problem(job, tokens, device)
    for result, _ in results:
        result.fill_(torch.nan)
    begun = perf_counter()
    made.start()
    if device == "cuda":
        torch.cuda.synchronize()
    took_ms = (perf_counter() - begun) * 1e3
    off = max(
        float(torch.linalg.vector_norm(result.float() - right) / torch.linalg.vector_norm(right))
        for result, right in results
    )
    if not off <= LIMIT:
        raise ValueError(f"off by {off:.2g} of its norm after {took_ms:.1f} ms")
    return f"ok: {took_ms:.1f} ms with compiling, off by {off:.2g}"


def problem(job: "Job", tokens: int, device: str) -> tuple[Any, list[tuple[Any, Any]]]:
    """The launch, and each result with what it should be, in fp32.

    The gradient kernels get the exact output, log-sum-exp and delta.
    """
    import torch

    from attnbench.impls._triton import launch
    from attnbench.impls.backend import TORCH_DTYPE

    generator = torch.Generator(device).manual_seed(1)

    def drawn(heads: int, n: int, width: int) -> "torch.Tensor":
        sizes = (2, heads, n, width)
        return torch.randn(sizes, generator=generator, device=device).to(TORCH_DTYPE[job.dtype])

    n_q = 1 if job.config.block_q == 16 and job.kernel != "grad_kv" else tokens
    q, do = drawn(4, n_q, job.d_k), drawn(4, n_q, job.d_v)
    k, v = drawn(2, tokens, job.d_k), drawn(2, tokens, job.d_v)
    offset = tokens - n_q
    exact = reference(q, k, v, do, causal=job.causal, offset=offset)
    setting = launch.Setting(scale=SCALE, causal=job.causal, causal_offset=offset, tf32=False)
    how: dict[str, Any] = {"setting": setting, "config": job.config}
    o, lse, delta = exact["o"].to(q.dtype), exact["lse"].clone(), exact["delta"].clone()
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    if job.kernel == "forward":
        filled = {"o": o, "lse": lse}
        made = launch.forward(q, k, v, None, o, lse, **how)
    elif job.kernel == "grad_q":
        filled = {"dq": dq, "delta": delta}
        made = launch.grad_q(q, k, v, None, o, do, lse, delta, dq, **how)
    else:
        filled = {"dk": dk, "dv": dv}
        made = launch.grad_kv(q, k, v, None, do, lse, delta, dk, dv, **how)
    if made.config != job.config:
        raise ValueError(made.why_not or launch.UNDESCRIBABLE)
    return made, [(tensor, exact[name]) for name, tensor in filled.items()]


def reference(
    q: "torch.Tensor", k: "torch.Tensor", v: "torch.Tensor", do: "torch.Tensor",
    *, causal: bool, offset: int,
) -> dict[str, "torch.Tensor"]:  # fmt: skip
    """In fp32: o, lse to base 2, delta and the gradients, those of keys summed over a group."""
    import torch

    group = q.shape[1] // k.shape[1]
    q, k, v = (x.float().requires_grad_() for x in (q, k, v))
    scores = q @ k.repeat_interleave(group, 1).mT * SCALE
    if causal:
        rows, columns = (torch.arange(n, device=q.device) for n in scores.shape[-2:])
        scores = scores.masked_fill(columns > rows[:, None] + offset, -torch.inf)
    lse = scores.logsumexp(-1)
    o = (scores - lse[..., None]).exp() @ v.repeat_interleave(group, 1)
    dq, dk, dv = torch.autograd.grad(o, (q, k, v), do.float())
    delta, lse = (o * do).sum(-1), lse * log2(torch.e)
    found = {"o": o, "lse": lse, "delta": delta, "dq": dq, "dk": dk, "dv": dv}
    return {name: tensor.detach() for name, tensor in found.items()}


if __name__ == "__main__":
    main()
