"""The configuration of a kernel for a kind of problems: triton.autotune times the candidates, in a
process of its own (`python -m` this module), since its do_bench takes 256 MiB on the device; the
choice is kept in a file, so that all processes have the same one, with or without Triton's cache.

That process gets JSON on its standard input: `kernels`, `kind` and the `device`'s number.
"""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache, partial
from hashlib import sha256
from itertools import chain
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, NamedTuple, get_args

import torch
import triton
from triton import knobs
from triton.errors import TritonError
from triton.runtime.errors import OutOfResources, PTXASError

from ..problem import Problem
from .configs import KERNELS, Config, Kernel, Kind, candidates
from .launch import Launch
from .op import example
from .ran_on_gpu import digest

PROGRAM = __name__
PACKAGE_PARENT = Path(__file__).parents[3]
OLDEST = (8, 0)  # what the interpreter stands in for
BUSY = "busy or unavailable"  # CUDA's error where another process holds a GPU for itself

Source = Literal["only", "timed", "untimed"]
"""The only candidate; timed by Triton; or the first in the list, as the GPU admits one process."""


class Choice(NamedTuple):
    """`tuning_s`: how long compiling and timing the candidates took, when the choice was made.
    `candidates`: as in a row, with `median_ms`, None for one that does not work on this GPU.
    """

    config: Config
    source: Source
    tuning_s: float = 0.0
    candidates: Sequence[dict[str, Any]] = ()


def kind_of(problem: Problem, device: torch.device, *, variant: str) -> Kind:
    gpu, (major, minor) = "", OLDEST
    if device.type == "cuda":
        gpu = torch.cuda.get_device_name(device)
        major, minor = torch.cuda.get_device_capability(device)
    tf32 = torch.get_float32_matmul_precision() != "highest"
    return Kind.of(problem, gpu=gpu, capability=10 * major + minor, tf32=tf32, variant=variant)


def chosen(problem: Problem, kind: Kind, device: torch.device) -> dict[Kernel, Choice]:
    """Of the kernels that the problem needs. Raises RuntimeError if no candidate works."""
    kernels = KERNELS if problem.backward else KERNELS[:1]
    index = device.index or 0
    return {kernel: _chosen(kernel, kernels, kind, index) for kernel in kernels}


@cache
def _chosen(kernel: Kernel, kernels: tuple[Kernel, ...], kind: Kind, device: int) -> Choice:
    """`kernels`: those that are timed together if this one is not known."""
    listed = candidates(kernel, kind)
    if len(listed) == 1 or knobs.runtime.interpret:  # timing needs a driver
        return Choice(listed[-1], "only")
    reason = "" if read(kernel, kind) else _time_apart(kernels, kind, device)
    if known := read(kernel, kind):
        return known
    if BUSY in reason:
        return Choice(next(one for one in listed if not one.gluon), "untimed")
    raise RuntimeError(f"timing the configurations of {kernel} failed: {reason}")


def _time_apart(kernels: Sequence[Kernel], kind: Kind, device: int) -> str:
    """In a process of its own; the last line of its errors."""
    path = os.pathsep.join(filter(None, [str(PACKAGE_PARENT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-P", "-m", PROGRAM],
        input=json.dumps({"kernels": kernels, "kind": asdict(kind), "device": device}),
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    return [f"exit code {done.returncode}", *done.stderr.strip().splitlines()][-1]


def facts(kind: Kind, choices: Mapping[Kernel, Choice]) -> dict[str, Any]:
    """Of a row, ready for JSON: what was chosen, and what it cost."""
    sources, forward = {one.source for one in choices.values()}, choices["forward"]
    slower = "another was faster" if forward.source == "timed" else "nothing was timed"
    return {
        "configuration": {kernel: asdict(one.config) for kernel, one in choices.items()},
        "configuration_source": max(sources, key=get_args(Source).index),
        "forward_kernel": "gluon" if forward.config.gluon else "portable",
        "why_not_gluon": None if forward.config.gluon else kind.why_not_gluon or slower,
        "tuning_s": sum(one.tuning_s for one in choices.values()),
        "candidates": [*chain(*(one.candidates for one in choices.values()))],
    }


# ---- the file of a choice ------------------------------------------------------------------------


def folder() -> Path:
    """In the user's cache, not in Triton's: torch.compile moves that while a process runs."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("ATTNBENCH_CACHE") or Path(home) / "attnbench") / "triton"


def path_of(kernel: Kernel, kind: Kind) -> Path:
    """Another one if the kernel's source, a candidate or Triton's version is another."""
    known_by = [asdict(kind), [digest(kernel, one) for one in candidates(kernel, kind)]]
    return folder() / f"{kernel}-{sha256(json.dumps(known_by).encode()).hexdigest()[:32]}.json"


def read(kernel: Kernel, kind: Kind) -> Choice | None:
    """None if there is no file, or none that is whole."""
    with suppress(OSError, ValueError, TypeError):
        config, *others = json.loads(path_of(kernel, kind).read_text())
        return Choice(Config(**config), *others)
    return None


# ---- the process that times ----------------------------------------------------------------------


class Tunable:
    """A kernel as triton.autotune takes it, a wrapper around `fn`. It makes a launch for each
    configuration, since descriptors have the sizes of its tiles; a pre_hook that changed those
    would forbid Triton to cache the choice.
    """

    arg_names = ("kind",)

    def __init__(self, launches: Sequence[Callable[[], Launch]]) -> None:
        self.launches, self.compiled = launches, dict[int, Launch]()
        self.fn = launches[-1]().function

    def run(self, _kind: str, *, place: int, **_options: int) -> None:
        """Raises PTXASError, which autotune survives, for whatever the compiler refuses."""
        if place not in self.compiled:
            try:
                made = self.launches[place]()
                made.compile()
            except (TritonError, RuntimeError, ImportError, AttributeError) as error:
                raise PTXASError(str(error)) from error
            self.compiled[place] = made
        self.compiled[place].start()


def tune(kernel: Kernel, kind: Kind, device: torch.device) -> Choice:
    """Raises RuntimeError if no candidate works."""
    began_s, listed, launched = perf_counter(), candidates(kernel, kind), example(kind, device)
    configs = [
        triton.Config({"place": place}, num_warps=one.warps, num_stages=one.stages)
        for place, one in enumerate(listed)
    ]
    tunable = Tunable([partial(launched, kernel, one) for one in listed])
    tuner = triton.autotune(configs, key=["kind"], cache_results=True)(tunable)
    with suppress(PTXASError, OutOfResources):  # of the last launch, if no candidate works
        tuner.run(path_of(kernel, kind).name)
    times = {listed[one.kwargs["place"]]: ms[0] for one, ms in tuner.configs_timings.items()}
    best = min(times, key=lambda one: times[one])
    if times[best] == inf:
        raise RuntimeError(f"none of the configurations of {kernel} works on {kind.gpu}")
    seen = [
        {"kernel": kernel, **asdict(one), "median_ms": times[one] if times[one] < inf else None}
        for one in listed
    ]
    return Choice(best, "timed", perf_counter() - began_s, seen)


def main() -> None:
    request = json.load(sys.stdin)
    fields, device = request["kind"], torch.device("cuda", request["device"])
    kind = Kind(**fields | {"problem": Problem(**fields["problem"])})
    torch.set_float32_matmul_precision("high" if kind.tf32 else "highest")
    folder().mkdir(parents=True, exist_ok=True)
    # Two at once would time each other.
    with torch.cuda.device(device), (folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for kernel in request["kernels"]:
            if len(candidates(kernel, kind)) > 1 and not read(kernel, kind):
                config, *others = tune(kernel, kind, device)
                new = folder() / "new"
                new.write_text(json.dumps([asdict(config), *others]))
                new.replace(path_of(kernel, kind))  # whole or not at all


if __name__ == "__main__":
    main()
