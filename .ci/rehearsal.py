#!/usr/bin/env python3
"""`make rehearsal`: a day with a GPU, without one.

A venv gets the versions of a GPU's machine, but none of the packages that such a machine lacks:
those come from .whl, as there. In it the three parts run with every step small and on the CPU: one
is cut off in the middle and called again, all are called once more, and the archives are opened.
GPU tests are collected and skip. Then the kernels for half precision are audited for compute
capability 9.0.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile

import wheels

ROOT = wheels.ROOT
VENV, WORK = ROOT / ".venv-rehearsal", ROOT / ".rehearsal"
TOOLS = ("pytest", "pytest-xdist")
OURS = {"torch", "triton"}  # their versions are chosen here
SKIPPED = "needs a CUDA device"
CUT_OFF_MINUTES = "1.5"  # enough for some steps of the first part, and not for all


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
    if shutil.which(python) is None:
        raise Failed(f"{python}: not found; wanted a Python 3.12; name one with PYTHON312=")
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(VENV)], check=True)
    (VENV / "versions.txt").write_text("\n".join(versions))
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    pip += ["--quiet", "-c", str(VENV / "versions.txt")]
    subprocess.run([*pip, *chosen, *names, *TOOLS], check=True)
    stamp.write_text(wanted)


def rehearse() -> None:
    """Raises Failed."""
    words = [python(), "-m", "pip", "list", "--format", "freeze", "--disable-pip-version-check"]
    listed = subprocess.run(words, env=environment(), check=True, capture_output=True, text=True)
    installed = wheels.pins(listed.stdout)
    if found := set(installed) & set(wheels.lacking()):
        raise Failed(f"{', '.join(sorted(found))}: in {VENV}; wanted from .whl only")
    expect("gpu-first, cut off", part("first", ARGS=f"--minutes {CUT_OFF_MINUTES}"), 3)
    unfinished = check_archive("first", finished=False)
    expect("gpu-first, called again", part("first"), 0)
    for name in ("sweep", "rest"):
        expect(f"gpu-{name}", part(name), 0)
    for name in ("first", "sweep", "rest"):
        runs = check_archive(name, finished=True)
        expect(f"gpu-{name}, with nothing left to do", part(name), 0)
        if check_archive(name, finished=True) != runs:
            raise Failed(f"gpu-{name}: called again, it measured again")
    print(f"cut off with {unfinished} runs, and finished by the second call", flush=True)
    words = ("--arch", "90", "--dtype", "bf16", "--kernel", "forward", "--out", str(WORK / "audit"))
    expect("kernels audit", called([python(), "-m", "attnbench", "kernels", "audit", *words]), 0)


def python() -> str:
    return str(VENV / "bin" / "python")


def part(name: str, **settings: str) -> int:
    """The exit code of make's target; an environment as there, with a variable OUT of its own."""
    archive = WORK / f"{name}.tar.gz"
    arguments = f"--rehearse {settings.get('ARGS', '')}".strip()
    words = [f"PYTHON={python()}", f"GPU_OUT={WORK / 'gpu'}", f"ARCHIVE={archive}"]
    return made(f"gpu-{name}", *words, f"ARGS={arguments}")


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
    last = done.stderr.strip().splitlines()[-1]  # make: *** [Makefile:76: gpu-first] Error 3
    return int(last.split()[-1])


def called(command: list[str]) -> int:
    path = os.pathsep.join([str(ROOT / ".package"), *map(str, (ROOT / ".site").glob("*312"))])
    surroundings = environment() | {"PYTHONPATH": path}
    return subprocess.run(command, cwd=ROOT, env=surroundings, check=False).returncode


def environment() -> dict[str, str]:
    """Ours, without what make or a user's shell set for other programs."""
    without = {"PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "TRITON_INTERPRET"}
    return {name: value for name, value in os.environ.items() if name not in without}


def expect(what: str, code: int, wanted: int) -> None:
    print(f"{what}: exit code {code}", flush=True)
    if code != wanted:
        raise Failed(f"{what}: exit code {code}; wanted {wanted}; see {WORK}")


def check_archive(name: str, *, finished: bool) -> int:
    """How many runs are in it. Raises Failed if something is missing."""
    path = WORK / f"{name}.tar.gz"
    with tarfile.open(path) as tar:
        names = tar.getnames()
        state = json.load(tar.extractfile(f"gpu/{name}/state.json"))  # type: ignore[arg-type]
        logs = {
            step: tar.extractfile(f"gpu/{name}/logs/{step}.log").read().decode()  # type: ignore[union-attr]
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
