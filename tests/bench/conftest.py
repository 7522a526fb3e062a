"""What several benchmarks need."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from tests.conftest import command_line, environment, ran
from tests.made_runs import read_rows

PROGRAM = """
import runpy, sys, time
sys.argv = sys.argv[1:]
run = runpy.run_path if sys.argv[0].endswith(".py") else runpy.run_module
try:
    run(sys.argv[0], run_name="__main__")
except SystemExit:
    pass
(peak,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(time.process_time(), peak, file=sys.stderr)
"""


def rows_of(command: str, *more: str, out: Path) -> list[dict[str, Any]]:
    """Run the command on the CPU with two threads, as on a small machine, into `out`; the rows of
    its run.
    """
    words = command_line(*command.split(), *more, "--device", "cpu", "--out", out, "--quiet")
    env = {**environment(), "OMP_NUM_THREADS": "2"}
    done = ran(words, env=env, check=True, timeout=None)
    return read_rows(Path(done.stdout.strip()))


def times_s(call: Callable[[], object], rounds: int) -> list[float]:
    """Wall times of so many calls, after a first one."""
    found = []
    for _ in range(rounds + 1):
        begun_s = time.perf_counter()
        call()
        found.append(time.perf_counter() - begun_s)
    print(f"{median(found[1:]):.4f} s")
    return found[1:]


def child(*words: object) -> tuple[str, float, int]:
    """Run a file or a module with its arguments: what it prints; its seconds of the processor, as
    what else runs here is not ours; its peak bytes.
    """
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    done = ran(command, check=True, timeout=None)
    cpu_s, peak_kib = done.stderr.split()[-2:]
    return done.stdout, float(cpu_s), int(peak_kib) << 10
