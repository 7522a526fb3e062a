"""`make gpu`: measure on a GPU that is here for nine minutes.

    python -m tests.gpu_day [--out DIR] [--archive FILE] [--minutes M] [--rehearse] [--dry-run]

It runs its steps in their order of worth and ends in time, with an archive of all rows, logs
and pages; the last line is its path. Called again it goes on where it ended. Needs no network, and
of the packages outside Python's own only those of the steps.

Exit code 0: all steps ended well. 1: one failed; the others ran. 3: time was up; call it again.
4: no GPU, or packages are missing.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.search_path import searched

from . import machine
from .day import ARCHIVE_S, PAGE_S, ROOT, Call
from .steps import STEPS, WALL_SHARE

UNMET = 4
MINUTES = 9.0
START_S = 10.0
H200_BYTES = 150_100_000_000  # in a plan that is printed elsewhere
PATIENCE = 6.0  # of a rehearsal: it may share two cores
MOST_JOBS = 8  # each holds a CUDA context and a compiler


def main() -> None:
    begin = time.monotonic()
    options = parse()
    path = searched(ROOT / ".package", ROOT, machine.SITE)
    environment = {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "COLUMNS": "120"}
    facts: dict[str, Any] = {"memory_bytes": H200_BYTES}
    if not options.dry_run:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, stopped)
        machine.unpack()
        facts = asked(environment)
        refuse_without(facts, rehearsed=options.rehearse)
    patience = PATIENCE if options.rehearse else 1.0
    out = (options.out or Path(".rehearsal/gpu" if options.rehearse else "results/gpu")).resolve()
    call = Call(
        every=STEPS,
        root=out,
        archive=(options.archive or out / "gpu.tar.gz").resolve(),
        machine=facts,
        deadline_s=begin + 60 * (options.minutes or MINUTES * patience),
        values={
            "python": sys.executable,
            "device": "cpu" if options.rehearse else "cuda",
            "memory_gib": f"{WALL_SHARE * (facts['memory_bytes'] or H200_BYTES) / 2**30:.1f}",
            "jobs": str(max(1, min(MOST_JOBS, len(os.sched_getaffinity(0)) // 2))),
            "runs": str(out / "runs"),
        },
        environment=environment,
        rehearsed=options.rehearse,
        patience=patience,
        say=lambda text: print(f"{time.strftime('%H:%M:%S')} {text}", flush=True),
    )
    if options.dry_run:
        print(plan(call, options.minutes or MINUTES))
        return
    try:
        code = call.run()
        if failed := call.failed():
            print(f"failed: {', '.join(failed)}; see {call.log('').parent}")
        if unfinished := call.unfinished():
            print(f"not finished: {', '.join(unfinished)}; call it again")
    finally:
        print(call.archive, flush=True)
    sys.exit(code)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu_day",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, help="results/gpu, or .rehearsal/gpu")
    parser.add_argument("--archive", type=Path, help="OUT/gpu.tar.gz")
    parser.add_argument("--minutes", type=float, help=f"{MINUTES:g}, or longer")
    parser.add_argument("--rehearse", action="store_true", help="small, on the CPU")
    parser.add_argument("--dry-run", action="store_true", help="print the plan")
    return parser.parse_args()


def asked(environment: dict[str, str]) -> dict[str, Any]:
    """The facts of machine.py, from a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.gpu_day.machine"],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def refuse_without(facts: dict[str, Any], *, rehearsed: bool) -> None:
    """Ends the program if something is missing."""
    problems = [f"{name}: not installed" for name, one in facts["packages"].items() if one is None]
    if facts["gpu"] is None and not rehearsed:
        problems.append(facts.get("torch_error") or "torch finds no CUDA device")
    if problems:
        hint = "`make wheels` elsewhere, then bring .whl; --rehearse needs no GPU"
        print(*problems, f"next: {hint}", sep="\n", file=sys.stderr)
        sys.exit(UNMET)


def plan(call: Call, minutes: float) -> str:
    """What a call would do, and how long at most."""
    spent = [(START_S, "start", "wheels, and the facts of the machine")]
    spent += [(one.most_s, one.name, shlex.join(call.filled(call.words(one)))) for one in STEPS]
    spent += [(PAGE_S, "pages", "of all runs"), (ARCHIVE_S, "archive", "of all that was made")]
    lines = [f"  {seconds:4.0f} s  {name:18} {text}" for seconds, name, text in spent if seconds]
    lines.append(
        f"  {sum(seconds for seconds, *_ in spent):4.0f} s  of {60 * minutes:.0f} s;"
        " with what is left:"
    )
    return "\n".join(lines + [f"          {name:18} {text}" for s, name, text in spent if not s])


def stopped(number: int, _frame: object) -> None:
    """As after Ctrl-C, so that the archive is written and no process is left."""
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
