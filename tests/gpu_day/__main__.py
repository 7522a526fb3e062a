"""`make gpu-first`, `gpu-sweep` and `gpu-rest`: measure on a GPU that is here for a short time.

    python -m tests.gpu_day PART... [--out DIR] [--archive FILE] [--minutes M] [--again STEP]
                                    [--rehearse] [--dry-run]

A part runs its steps in their order of worth. It ends in time, with an archive of all rows, logs
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.search_path import searched

from . import packages
from .commands import ROOT
from .day import ARCHIVE_S, FAILED, FINISHED, REPORT_S, UNFINISHED, Call, Place
from .machine import lacks
from .steps import PARTS, Part

UNMET = 4
PATIENCE = 6.0  # of a rehearsal: it may share two cores
MOST_JOBS = 8  # each holds a CUDA context and a compiler


def main() -> None:
    begin = time.monotonic()
    options = parse(sys.argv[1:])
    parts = [PARTS[name] for name in dict.fromkeys(options.part)]
    if options.dry_run:
        for part in parts:
            print(plan(part, place(options, {"capability": "90"}), options.minutes))
        return
    signal.signal(signal.SIGTERM, stopped)
    signal.signal(signal.SIGHUP, stopped)
    unpacked = packages.unpack(sys.executable)
    environment = surroundings()
    machine = asked(environment)
    if unpacked:
        print(f"unpacked {len(unpacked)} wheels into {packages.SITE}", flush=True)
    problems = lacks(machine["packages"])
    if machine["gpu"] is None and not options.rehearse:
        problems.append(machine.get("torch_error") or "torch finds no CUDA device")
    if problems:
        hint = "`make wheels` elsewhere, then bring .whl; --rehearse needs no GPU"
        print(*problems, f"next: {hint}", sep="\n", file=sys.stderr)
        sys.exit(UNMET)
    codes = []
    for part in parts:
        where = place(options, machine)
        minutes = options.minutes or part.minutes * where.patience
        call = Call(
            part=part,
            place=where,
            archive=archive_of(options, part),
            machine=machine,
            deadline_s=begin + 60 * minutes,
            environment=environment,
            again=options.again,
            say=lambda text: print(f"{time.strftime('%H:%M:%S')} {text}", flush=True),
        )
        try:
            codes.append(call.run())
            print(summary(call), flush=True)
        finally:
            print(call.archive, flush=True)
        begin = time.monotonic()
    sys.exit(next((code for code in (FAILED, UNFINISHED) if code in codes), FINISHED))


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu_day",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("part", nargs="+", choices=PARTS, help=", ".join(PARTS))
    parser.add_argument("--out", type=Path, help="results/gpu, or .rehearsal/gpu")
    parser.add_argument("--archive", type=Path, help="OUT/PART.tar.gz; only of a single part")
    parser.add_argument("--minutes", type=float, help="of each part; 9 or 9.5")
    parser.add_argument("--again", action="append", default=[], help="a step that has ended")
    parser.add_argument("--rehearse", action="store_true", help="small, on the CPU")
    parser.add_argument("--dry-run", action="store_true", help="print the plan")
    found = parser.parse_args(words)
    names = {step.name for part in found.part for step in PARTS[part].steps}
    if unknown := set(found.again) - names:
        parser.error(f"--again: no step {sorted(unknown)}; there are: {', '.join(sorted(names))}")
    if found.archive and len(set(found.part)) > 1:
        parser.error("--archive: one file; wanted a single part")
    if found.out is None:
        found.out = Path(".rehearsal/gpu" if found.rehearse else "results/gpu")
    return found


def place(options: argparse.Namespace, machine: dict[str, Any]) -> Place:
    return Place(
        python=sys.executable,
        device="cpu" if options.rehearse else "cuda",
        arch="90" if options.rehearse else machine["capability"],
        jobs=max(1, min(MOST_JOBS, len(os.sched_getaffinity(0)) // 2)),
        root=options.out.resolve(),
        patience=PATIENCE if options.rehearse else 1.0,
    )


def archive_of(options: argparse.Namespace, part: Part) -> Path:
    chosen = options.archive or options.out / f"{part.name}.tar.gz"
    return Path(chosen).resolve()


def surroundings() -> dict[str, str]:
    """What steps get beside our own environment."""
    path = searched(ROOT / ".package", ROOT, packages.SITE)
    return {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "COLUMNS": "120"}


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


def plan(part: Part, where: Place, minutes: float | None) -> str:
    """What a call would do, and how long at most."""
    lines = [f"{part.name}: {minutes or part.minutes:g} minutes, of which {REPORT_S:.0f} s are for"]
    lines[0] += f" pages and {ARCHIVE_S:.0f} s for the archive"
    for step in part.steps:
        lines.append(f"  {step.most_s:4.0f} s  {step.name:16}  {shlex.join(where.command(step))}")
    lines.append(f"  {sum(step.most_s for step in part.steps):4.0f} s  all steps together, at most")
    return "\n".join(lines)


def summary(call: Call) -> str:
    lines = []
    if failed := call.failed():
        lines.append(f"failed: {', '.join(failed)}; see {call.folder / 'logs'}")
    if unfinished := call.unfinished():
        lines.append(f"not finished: {', '.join(unfinished)}; call {call.part.name} again")
    return "\n".join(lines or [f"{call.part.name}: every step ended well"])


def stopped(number: int, _frame: object) -> None:
    """As after Ctrl-C, so that the archive is written and no process is left."""
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
