"""Run each Triton kernel that this GPU may get, and note those whose results are right:

    python -m tests.gpu_day.kernels --device cuda --out FILE

impls/_triton/ran_on_gpu.json of this checkout gets their hashes, and FILE is a copy of it. On a
CPU, for a rehearsal, nothing is run.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import torch

from attnbench.harness.measure.correctness import CorrectnessCheck
from attnbench.impls import Problem, make_inputs
from attnbench.impls._triton.configs import KERNELS, Config, Kernel, Kind, candidates
from attnbench.impls._triton.ran_on_gpu import FILE, digest
from attnbench.impls.backend import leaves
from attnbench.impls.triton import attend

SHAPES = tuple(product(("bf16", "fp32"), (64, 128, 256), (1024, 16)))
"""Dtype, width of heads, queries."""


def ran(
    device: torch.device,
    capability: int,
    shapes: Iterable[tuple[Any, int, int]] = SHAPES,
    keys: int = 1000,
) -> Iterator[tuple[Kernel, Config]]:
    """The kernels whose output and gradients pass the harness's own check; prints the others."""
    for dtype, width, n_q in shapes:
        sizes: dict[str, Any] = {"batch": 2, "seq_len": n_q, "kv_seq_len": max(n_q, keys)}
        sizes |= {"heads": 4, "kv_heads": 2, "d_model": 4 * width, "dtype": dtype}
        causal: dict[str, Any] = {"causal": True, "causal_align": "bottom_right"}
        problem = Problem(**sizes, **causal, passes="forward+backward")
        kind = Kind.of(problem, gpu="", capability=capability)
        inputs = make_inputs(problem, device, seed=1)
        check = CorrectnessCheck(problem, inputs, None, seed=3)
        others = {kernel: candidates(kernel, kind)[-1] for kernel in KERNELS}
        for kernel in KERNELS:
            for config in candidates(kernel, kind):
                try:
                    output = attend(problem, inputs, {**others, kernel: config})(*inputs)
                    gradients = torch.autograd.grad(output, leaves(inputs, None), check.grad_output)
                    complaint = check.check(output, gradients).complaint
                except Exception as error:  # noqa: BLE001 - the compiler or the GPU refuses it
                    complaint = f"{type(error).__name__}: {error}"
                if complaint:
                    print(f"{kernel} {config}, {dtype}, {width}: {complaint}")
                else:
                    yield kernel, config


def main() -> int:
    parser = argparse.ArgumentParser(description="Note the Triton kernels that this GPU runs.")
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    table = json.loads(FILE.read_text())
    if given.device == "cuda":
        device = torch.device("cuda", torch.cuda.current_device())
        major, minor = torch.cuda.get_device_capability(device)
        told = {"gpu": torch.cuda.get_device_name(device), "day": f"{datetime.now(UTC):%Y-%m-%d}"}
        for kernel, config in ran(device, 10 * major + minor):
            table["ran"][digest(kernel, config)] = {"kernel": f"{kernel} {config}", **told}
        FILE.write_text(json.dumps(table, indent=2) + "\n")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(table, indent=2) + "\n")
    print(f"{len(table['ran'])} kernels have run on a GPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
