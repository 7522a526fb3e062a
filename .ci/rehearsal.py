#!/usr/bin/env python3
"""`make rehearsal`: a day with a GPU, without one.

A venv gets the versions of a GPU's machine, but none of the packages that such a machine lacks:
those come from .whl, as there. In it every step runs small and on the CPU: a call runs out of time,
the next one is killed in a run, one goes on to the end, and another finds nothing left to do; the
archive is opened after each. GPU tests are collected and skip.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import wheels

ROOT = wheels.ROOT
VENV, WORK = ROOT / ".venv-rehearsal", ROOT / ".rehearsal"
TOOLS = ("pytest", "pytest-xdist", "pytest-benchmark")
VERSION = "3.12"  # of Python, on a GPU's machine
OURS = {"torch", "triton"}  # their versions are chosen here
SKIPPED = "needs a CUDA device"
CUT_OFF_MINUTES = "1.3"  # of which pages and archive keep 40 s: calibration takes the rest
ARCHIVE = WORK / "gpu.tar.gz"
START_S = 1200.0  # until a run begins: the steps before it on a busy machine


class Failed(Exception):
    """The day would not have gone well; the message says why."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--python", required=True, help="a Python 3.12")
    options.add_argument("--torch", required=True, help="for pip, as torch==2.11.*")
    options.add_argument("--triton", required=True, help="for pip, as triton==3.6.*")
    given = options.parse_args()
    try:
        install(given.python, [given.torch, given.triton])
        shutil.rmtree(WORK, ignore_errors=True)
        rehearse()
    except Failed as failed:
        sys.exit(f"make rehearsal: {failed}")


def install(python: str, chosen: list[str]) -> None:
    """What such a machine has; nothing if the venv has it already."""
    names = sorted((wheels.needed() & wheels.there()) - OURS)
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    versions = [line for line in lines if line.split("==")[0] not in OURS]
    stamp, wanted = VENV / "installed.txt", "\n".join([python, *chosen, *names, *versions])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    base = first_of(candidates(python))
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([base, "-m", "venv", str(VENV)], check=True)
    (VENV / "versions.txt").write_text("\n".join(versions))
    pip = [python_of(VENV), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    words = ["install", "-c", str(VENV / "versions.txt"), *chosen, *names, *TOOLS]
    subprocess.run([*pip, *words], check=True)
    # newer packages may bring what a machine of last year lacks
    subprocess.run([*pip, "uninstall", "--yes", *wheels.lacking()], check=True)
    stamp.write_text(wanted)


def candidates(python: str) -> list[str]:
    """As named, then pyenv's own: its python3.12 on PATH only runs where 3.12 is chosen."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return [python, *map(str, sorted(root.glob(f"versions/{VERSION}*/bin/python"), reverse=True))]


def first_of(pythons: list[str]) -> str:
    """The first that runs and is a Python 3.12. Raises Failed."""
    question = "import sys; print('%d.%d' % sys.version_info[:2])"
    found = []
    for python in pythons:
        try:
            asked = [python, "-c", question]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
        except OSError as error:
            found.append(f"{python}: {error.strerror}")
            continue
        if done.stdout.strip() == VERSION:
            return python
        said = (done.stdout + done.stderr).strip().splitlines() or [f"exit code {done.returncode}"]
        found.append(f"{python}: {said[0]}")
    raise Failed(f"{'; '.join(found)}; wanted a Python {VERSION}; name one with PYTHON312=")


def rehearse() -> None:
    """Raises Failed."""
    words = [
        python_of(VENV),
        "-m",
        "pip",
        "list",
        "--format",
        "freeze",
        "--disable-pip-version-check",
    ]
    listed = subprocess.run(words, env=environment(), check=True, capture_output=True, text=True)
    installed = wheels.pins(listed.stdout)
    if found := set(installed) & set(wheels.lacking()):
        raise Failed(f"{', '.join(sorted(found))}: in {VENV}; wanted from .whl only")
    expect("cut off", day(f"--minutes {CUT_OFF_MINUTES}"), 3)
    check_archive(finished=False)
    expect("killed", killed("*-head_cost-*"), 128 + signal.SIGTERM)
    check_archive(finished=False)
    expect("called again", day(), 0)
    runs = check_archive(finished=True)
    expect("with nothing left to do", day(), 0)
    if check_archive(finished=True) != runs:
        raise Failed("called again, it measured again")


def python_of(venv: Path) -> str:
    return str(venv / "bin" / "python")


def day(arguments: str = "") -> int:
    """The exit code of make's target; an environment as there, with a variable OUT of its own."""
    words = [f"PYTHON={python_of(VENV)}", f"GPU_OUT={WORK / 'gpu'}", f"ARCHIVE={ARCHIVE}"]
    return made("gpu", *words, f"ARGS=--rehearse {arguments}".strip())


def made(*words: str) -> int:
    """make itself ends with 2 for any failure; the program's code is in what it says."""
    done = subprocess.run(
        ["make", "--no-print-directory", *words],
        cwd=ROOT,
        env=environment() | {"OUT": str(WORK / "not-ours")},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    sys.stderr.write(done.stderr)
    if done.returncode == 0:
        return 0
    last = done.stderr.strip().splitlines()[-1]  # make: *** [Makefile:99: gpu] Error 3
    return int(last.split()[-1])


def killed(run: str) -> int:
    """Call, and end it as soon as it has begun such a run. Raises Failed if it does not begin."""
    words = ["-m", "tests.gpu_day", "--rehearse", "--out", str(WORK / "gpu")]
    words += ["--archive", str(ARCHIVE)]
    before = set((WORK / "gpu" / "runs").glob(run))
    command = [python_of(VENV), *words]
    with subprocess.Popen(command, cwd=ROOT, env=environment()) as process:
        end_s = time.monotonic() + START_S
        begun = False
        while not begun and process.poll() is None and time.monotonic() < end_s:
            time.sleep(0.1)
            begun = bool(set((WORK / "gpu" / "runs").glob(run)) - before)
        process.terminate()
    if not begun:
        raise Failed(f"killed: no run {run} began in {START_S:.0f} s")
    return process.returncode


def environment() -> dict[str, str]:
    """Ours, without what make or a user's shell set for other programs, and with locks of its own:
    other runs may have this machine's CPU.
    """
    without = {"PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "TRITON_INTERPRET"}
    kept = {name: value for name, value in os.environ.items() if name not in without}
    return kept | {"ATTNBENCH_LOCKS": str(WORK / "locks")}


def expect(what: str, code: int, wanted: int) -> None:
    print(f"{what}: exit code {code}", flush=True)
    if code != wanted:
        raise Failed(f"{what}: exit code {code}; wanted {wanted}; see {WORK}")


def check_archive(*, finished: bool) -> int:
    """How many runs are in it. Raises Failed if something is missing."""
    path = ARCHIVE
    with tarfile.open(path) as tar:
        names = tar.getnames()
        state = json.load(tar.extractfile("gpu/day/state.json"))  # type: ignore[arg-type]
        logs = {
            step: tar.extractfile(f"gpu/day/logs/{step}.log").read().decode()  # type: ignore[union-attr]
            for step, noted in state["steps"].items()
            if noted["state"] != "not started"
        }
    ended = {step for step, noted in state["steps"].items() if noted["state"] == "ended"}
    if finished != (len(ended) == len(state["steps"])):
        raise Failed(f"{path}: ended are {sorted(ended)}")
    runs = [run for noted in state["steps"].values() for run in noted["runs"]]
    for run in runs:
        for file in ("run.json", "rows.jsonl", "report.html"):
            if finished and f"gpu/runs/{run}/{file}" not in names:
                raise Failed(f"{path}: lacks {run}/{file}")
    for step in ended:
        if "pytest" in state["steps"][step]["command"] and SKIPPED not in logs[step]:
            raise Failed(f"{path}: {step}: no GPU test skipped with its reason")
    return len(runs)


if __name__ == "__main__":
    main()
