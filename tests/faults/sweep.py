"""Runs the attacks: every try in a process of its own, which adopts whatever the try leaves."""

import ctypes
import importlib
import json
import os
import pkgutil
import shutil
import signal
import subprocess
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Protocol

import psutil

from . import attacks
from .outcome import Outcome, Tally
from .trial import SMALL, Trial

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
MOST_KEPT_BYTES = 64 << 20
LIMIT_S = 300.0  # of a try; attacks stop commands that hang much earlier


class Attack(Protocol):
    """A file in attacks/: its docstring's first line says what it does, `TITLE` names it."""

    TITLE: str
    COUNT: int  # tries of a whole sweep
    SHORT: int  # tries of the short one

    def attempt(self, trial: Trial) -> None:
        """Attack attnbench once, and note in trial.outcome what it did wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`share`: of the tries of a whole sweep; None is the short one. `minutes`: 0 has no limit."""

    seed: int
    share: float | None
    minutes: float
    jobs: int
    findings: Path
    work: Path


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(attacks.__path__))


def load(name: str) -> Attack:
    module: Attack = importlib.import_module(f"{attacks.__name__}.{name}")  # type: ignore[assignment]
    return module


def order(wanted: Sequence[str], share: float | None) -> list[tuple[str, int]]:
    """Attack and number of every try, mixed so that a sweep cut short has some of each."""
    found = []
    for name in wanted:
        attack = load(name)
        count = attack.SHORT if share is None else max(1, round(attack.COUNT * share))
        found += [((number + 0.5) / count, name, number) for number in range(count)]
    return [(name, number) for _, name, number in sorted(found)]


def sweep(plan: Plan, wanted: Sequence[str], report: Callable[[str], None]) -> list[Tally]:
    """Try everything; the folders of tries that were not survived go to `plan.findings`."""
    adopt_orphans()
    finished = measured_once(plan.work)
    tallies = {name: Tally(load(name).TITLE) for name in wanted}
    tries = iter(order(wanted, plan.share))
    end = time.monotonic() + plan.minutes * 60 if plan.minutes else float("inf")
    for name, number, outcome in _side_by_side(plan, finished, _until(tries, end)):
        tallies[name].add(outcome)
        if not outcome.survived:
            report(f"{name} {number}: {outcome.what}: {'; '.join(outcome.wrong)[:500]}")
    return list(tallies.values())


def _until(tries: Iterable[tuple[str, int]], end: float) -> Iterator[tuple[str, int]]:
    for one in tries:
        if time.monotonic() > end:
            return
        yield one


def _side_by_side(
    plan: Plan, finished: Path, tries: Iterator[tuple[str, int]]
) -> Iterator[tuple[str, int, Outcome]]:
    """`plan.jobs` tries at once, each with a deadline; their outcomes as they end."""
    running: dict[int, tuple[str, int, Path, float]] = {}
    left = True
    while left or running:
        while left and len(running) < plan.jobs:
            if (one := next(tries, None)) is None:
                left = False
                break
            folder = plan.work / f"{one[0]}-{one[1]}"
            pid = _start(one, folder, finished, plan.seed)
            running[pid] = (*one, folder, time.monotonic() + LIMIT_S)
        time.sleep(0.005)
        for pid in list(running):
            name, number, folder, deadline = running[pid]
            late = time.monotonic() > deadline
            if late:
                _end_all(pid)
            if not os.waitpid(pid, 0 if late else os.WNOHANG)[0]:
                continue
            del running[pid]
            outcome = _read(folder, late=late)
            _keep_or_remove(folder, outcome, plan, name, number)
            yield name, number, outcome


def _start(one: tuple[str, int], folder: Path, finished: Path, seed: int) -> int:
    """The number of a new process that makes the try and writes its outcome."""
    name, number = one
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    attack = load(name)
    if (pid := os.fork()) != 0:
        return pid
    try:  # nothing of the parent's stack may run in the child
        adopt_orphans()
        trial = Trial(folder, number, Random(f"{seed} {name} {number}"), finished)
        try:
            attack.attempt(trial)
        except BaseException:  # noqa: BLE001 - told in the table
            trial.outcome.wrong.append(f"the attack itself failed: {traceback.format_exc()}")
        trial.none_left()
        text = json.dumps(asdict(trial.outcome))
        (folder / "outcome.json").write_text(text, encoding="utf-8")
    finally:
        os._exit(0)


def _read(folder: Path, *, late: bool) -> Outcome:
    if late:
        return Outcome(what="the whole try", hangs=1, wrong=[f"not done after {LIMIT_S:g} s"])
    try:
        return Outcome(**json.loads((folder / "outcome.json").read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        return Outcome(what="the whole try", wrong=[f"it said nothing: {error}"])


def _keep_or_remove(folder: Path, outcome: Outcome, plan: Plan, name: str, number: int) -> None:
    if not outcome.survived:
        again = f"make faults ARGS='--seed {plan.seed} --only {name} --number {number}'"
        text = "\n".join([outcome.what, *outcome.wrong, f"to repeat: {again}", ""])
        kept = plan.findings / folder.name
        shutil.rmtree(kept, ignore_errors=True)
        plan.findings.mkdir(parents=True, exist_ok=True)
        with suppress(OSError, shutil.Error):
            shutil.copytree(folder, kept, symlinks=True, ignore=_special)
        kept.mkdir(exist_ok=True)
        (kept / "finding.txt").write_text(text, encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)


def _special(folder: str, names: list[str]) -> set[str]:
    """FIFOs and devices, which cannot be copied, and files of a terabyte, which need not be."""
    paths = [Path(folder, name) for name in names]
    plain = {path.name for path in paths if path.is_dir() or _size(path) <= MOST_KEPT_BYTES}
    return set(names) - plain


def _size(path: Path) -> float:
    return path.stat().st_size if path.is_file() else float("inf")


def _end_all(pid: int) -> None:
    with suppress(psutil.Error):
        for process in [*psutil.Process(pid).children(recursive=True), psutil.Process(pid)]:
            with suppress(psutil.Error):
                process.kill()


def adopt_orphans() -> None:
    """Processes below this one whose parent dies become its children, whatever they do."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def measured_once(work: Path) -> Path:
    """A run that ended well. Raises RuntimeError: without one no attack says anything."""
    folder = work / "finished"
    folder.mkdir(parents=True, exist_ok=True)
    trial = Trial(folder, 0, Random(0), folder)
    try:
        code = trial.call("run", *SMALL, "--quiet")
    except subprocess.SubprocessError as error:
        raise RuntimeError(f"attnbench cannot be started: {error}") from None
    if code or trial.outcome.wrong:
        raise RuntimeError(f"a run without any attack failed: {trial.said()}")
    (run,) = trial.runs()
    return run
