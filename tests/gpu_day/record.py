"""Record what a GPU's driver, allocator and profiler answer, for fakes that answer the same:

    python -m tests.gpu_day.record --device cuda --out FILE [--seconds S]

One JSON object a line, by `kind`: `allocator` is what torch's statistics and the device's free
memory were before and after the first use of a `library`; `nvml` what NVML said at `time_s` of a
`phase` (idle, block, steady), `missing` why it did not; `trace` the profiler's events of a call.
FILE is replaced. On a CPU, for a rehearsal, NVML is asked nothing. tests/fakes/nvml/replay.py reads
it.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import conv2d, scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile, supported_activities

from attnbench.harness.devices.nvml import (
    BOARD_READINGS,
    Gpu,
    latest_busy_ratio,
    nvml_device,
    open_gpu,
    throttled_s,
    used_bytes,
)
from attnbench.harness.devices.probes.kernels import trace_events
from attnbench.harness.measure.clock import clock_for
from attnbench.harness.measure.steady_loop import steady_loop

GPU_READINGS = {
    **BOARD_READINGS,
    "device_used_bytes": used_bytes,
    "kernel_busy_ratio": latest_busy_ratio,
}
PERIOD_S = 1 / 20
SECONDS = 3.0  # of idling, and of the steady loop
BLOCK_CALLS = 50
CALLS = 3  # in a trace
STATISTICS = ("requested_bytes", "allocated_bytes", "reserved_bytes")

Write = Callable[..., None]


class Watcher(threading.Thread):
    """Asks NVML 20 times a second, in this process as attnbench's workers do."""

    def __init__(self, gpu: Gpu, write: Write) -> None:
        super().__init__(daemon=True)
        self.gpu, self.write = gpu, write
        self.phase, self.begun_s = "idle", time.monotonic()
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(PERIOD_S):
            self.ask()

    def begin(self, phase: str) -> None:
        """A phase may be shorter than a period."""
        self.phase = phase
        self.ask()

    def ask(self) -> None:
        asked_s = time.monotonic() - self.begun_s
        said = {name: read(self.gpu) for name, read in GPU_READINGS.items()}
        said |= throttled_s(self.gpu)
        said["energy_mj"] = self.gpu.query("nvmlDeviceGetTotalEnergyConsumption")
        answers = {name: one.value for name, one in said.items() if one.value is not None}
        missing = {name: one.reason for name, one in said.items() if one.value is None}
        took_s = time.monotonic() - self.begun_s - asked_s
        at = {"phase": self.phase, "time_s": asked_s, "took_s": took_s}
        self.write("nvml", **at, answers=answers, missing=missing)


def first_uses(device: torch.device) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each library with a call that begins to use it."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    x = torch.ones(256, 256, device=device, dtype=dtype)
    image = torch.ones(1, 8, 16, 16, device=device, dtype=dtype)
    weight = torch.ones(8, 8, 3, 3, device=device, dtype=dtype)
    q = torch.ones(1, 2, 128, 64, device=device, dtype=dtype)
    yield "cublas", lambda: x @ x
    yield "cudnn", lambda: conv2d(image, weight)
    for name in ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"):
        yield f"sdpa {name.lower()}", partial(attend, getattr(SDPBackend, name), q)


def attend(kernel: SDPBackend, q: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel(kernel):
        return scaled_dot_product_attention(q, q, q)


def statistics(device: torch.device) -> dict[str, Any]:
    if device.type != "cuda":
        return {}
    torch.cuda.synchronize(device)
    known = torch.cuda.memory_stats(device)
    free_bytes, total_bytes = torch.cuda.mem_get_info(device)
    found = {
        f"{name}.{at}": known[f"{name}.all.{at}"]
        for name in STATISTICS
        for at in ("current", "peak")
    }
    return found | {"free_bytes": free_bytes, "total_bytes": total_bytes}


def record(device: torch.device, file: TextIO, seconds: float = SECONDS) -> None:
    lock = threading.Lock()

    def write(kind: str, **values: Any) -> None:
        with lock:
            file.write(json.dumps({"kind": kind, **values}) + "\n")
            file.flush()  # whatever is cut off later

    for library, use in first_uses(device):
        before, why = statistics(device), ""
        try:
            use()
        except RuntimeError as error:  # such as a kernel that this GPU lacks
            why = str(error).partition("\n")[0]
        write("allocator", library=library, before=before, after=statistics(device), error=why)
    q = torch.randn(1, 8, 1024 if device.type == "cuda" else 64, 64, device=device)
    call = lambda: scaled_dot_product_attention(q, q, q)  # noqa: E731
    clock = clock_for(device)
    call_ms = clock.timer(call, 1e3).sample(5).block_ms[-1]
    gpu, reason = open_gpu(nvml_device(device))
    watcher = Watcher(gpu, write) if gpu else None
    if watcher is None:
        write("nvml", phase="", missing={"": reason})
    else:
        watcher.start()
    time.sleep(seconds)
    for phase in ("block", "steady"):
        if watcher:
            watcher.begin(phase)
        if phase == "block":
            clock.timer(call, call_ms).sample(BLOCK_CALLS)
        else:
            steady_loop(call, call_ms, seconds, [], device)
    if watcher:
        watcher.ended.set()
        watcher.join()
    wanted = {ProfilerActivity.CPU, ProfilerActivity.CUDA} & supported_activities()
    with profile(activities=wanted) as profiler:
        for _ in range(CALLS):
            call()
        clock.finish()
    write("trace", calls=CALLS, events=trace_events(profiler))


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu_day.record", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args(words)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w") as file:
        index = 0 if options.device == "cuda" else None
        record(torch.device(options.device, index), file, options.seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
