"""The process that times configurations, on a GPU that is none: `python -m
tests.impls._triton.faked_tuning` in the place of tuning.py. `... prepare` prints the facts of a row
whose `prepare` starts it; `... others FOLDER` those of other cases, in this process alone.

$BENCH says which candidate Triton's do_bench finds fastest, `first` or `last`; with `fails` none of
them fits, with `busy` the GPU is another process's. One with tiles of $REFUSED queries is refused
by the compiler.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from io import StringIO
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.errors import OutOfResources

from attnbench.impls import Problem, load, make_inputs
from attnbench.impls._triton import tuning
from attnbench.impls._triton.launch import Launch
from tests.fakes.cuda import FakeGpu, fake_cuda


class NoGpu:
    """The part of a driver that timing needs."""

    def __init__(self) -> None:
        self.timed = 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 80, 32)

    def get_benchmarker(self) -> Callable[..., Sequence[float]]:
        return self.do_bench

    def do_bench(self, start: Callable[[], object], quantiles: object) -> Sequence[float]:
        bench = os.environ["BENCH"]
        if bench == "fails":
            raise OutOfResources(1 << 20, 99 << 10, "shared memory")
        start()
        self.timed += 1
        ms = 1.0 * self.timed if bench == "first" else 1.0 / self.timed
        return [ms, ms, ms]


def compile_some(made: Launch) -> None:
    if str(made.config.block_q) == os.environ.get("REFUSED"):
        raise RuntimeError("PassManager::run failed")


def prepared() -> dict[str, Any]:
    shape: dict[str, Any] = {"batch": 1, "seq_len": 200, "d_model": 128, "heads": 2}
    problem = Problem(**shape, dtype="bf16", passes="forward+backward")
    inputs = make_inputs(problem, torch.device("cuda", 0), seed=1)
    call: Any = load("triton").prepare(problem, inputs, None)
    return call.facts  # type: ignore[no-any-return]


def in_process(_command: Sequence[str], **given: Any) -> CompletedProcess[str]:
    """In place of subprocess.run."""
    try:
        if os.environ["BENCH"] == "busy":
            raise RuntimeError("CUDA error: CUDA-capable device(s) is/are busy or unavailable")
        with patch("sys.stdin", StringIO(given["input"])):
            tuning.main()
    except RuntimeError as error:
        return CompletedProcess([], 1, "", f"RuntimeError: {error}\n")
    return CompletedProcess([], 0, "", "")


def others(folder: str) -> dict[str, Any]:
    """Facts, or an error; but for the first each with no choice from before."""
    with patch.dict(os.environ, {"BENCH": "first", "TRITON_CACHE_DIR": f"{folder}/triton"}):
        found: dict[str, Any] = {"carried": prepared()}
    for name, more in (
        ("again", {"BENCH": "first"}),  # Triton's cache is that of `prepare`
        ("refused", {"BENCH": "first", "REFUSED": "128"}),
        ("busy", {"BENCH": "busy"}),
        ("fails", {"BENCH": "fails"}),
    ):
        own = {} if name == "again" else {"TRITON_CACHE_DIR": f"{folder}/{name}/triton"}
        tuning._chosen.cache_clear()
        with (
            patch.dict(os.environ, {"ATTNBENCH_CACHE": f"{folder}/{name}", **own, **more}),
            patch.object(tuning, "subprocess", SimpleNamespace(run=in_process)),
        ):
            try:
                found[name] = prepared()
            except RuntimeError as error:
                found[name] = str(error)
    return found


def main() -> None:
    driver.set_active(NoGpu())
    with (
        fake_cuda(FakeGpu()),
        patch.object(torch.cuda, "get_device_capability", lambda _device: (8, 0)),
        patch.object(Launch, "compile", compile_some),
        patch.object(Launch, "start", lambda _made: None),
        patch.object(tuning, "PROGRAM", "tests.impls._triton.faked_tuning"),
    ):
        match sys.argv[1:]:
            case ["prepare"]:
                print(json.dumps(prepared()))
            case ["others", folder]:
                print(json.dumps(others(folder)))
            case _:
                tuning.main()


if __name__ == "__main__":
    main()
