"""Measure two checkouts in turns on this machine.

A checkout is measured by `attnbench run` in a process of its own, with its code and backends.
"""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal

from ..files.errors import (
    BadInput,
    EnvironmentUnmet,
    Refusal,
    Spelling,
    option,
    shown,
    unless_refused,
)
from ..files.printable import visible
from ..files.safe_files import refuse_way_out, write_whole
from ..process.command import SAFE_PATH, run_command
from . import completion, fields
from .compare import USUAL_MARGIN, as_text, margin_ratio, read_margins, runs_in
from .request import Option, words
from .run import RunRequest

OF_BOTH = ("allow_import", "device", "plan", "threads", "wait")
"""Options that each run has too."""
USUAL_SCENARIOS = ("gate.yaml", "bench.yaml", ".ci/gate.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest:
    base: Annotated[
        str, Option("BASE", parse=as_text, wanted="a folder or a commit", argument=True)
    ]
    """Reference checkout: a folder, or a commit, branch or tag of HEAD's repository. Empty: measure
    HEAD alone.
    """
    head: Annotated[Path, Option("HEAD", argument=True)] = Path()
    """Checkout to judge."""
    scenario: Annotated[
        str | None, Option("SCENARIO", fields.WHAT, complete=completion.scenarios, parse=as_text)
    ] = None
    """Scenario (default: HEAD's gate.yaml or bench.yaml); a file or a built-in one."""
    code: Annotated[str | None, Option("DIR", fields.WHAT)] = None
    """Folder in each checkout for PYTHONPATH; needed if the code is not installed."""
    backend_dir: Annotated[str | None, Option("DIR", fields.WHAT)] = None
    """Folder in each checkout with your own backends; sets ATTNBENCH_BACKENDS."""
    allow_import: fields.AllowImport = False
    turns: Annotated[int, Option("COUNT", fields.HOW, least=1, most=1000)] = 5
    """Runs of each checkout; fewer than 3 rarely decide anything."""
    plan: fields.Plan = None
    device: fields.Device = None
    python: Annotated[str | None, Option("PATH", fields.HOW)] = None
    """Interpreter that measures (default: this one)."""
    base_python: Annotated[str | None, Option("PATH", fields.HOW)] = None
    """Interpreter for BASE (default: that of HEAD); compares versions of packages."""
    threads: fields.Threads = None
    gate: Annotated[str, Option("FILE|EXPR")] = "latency: 5%, peak_bytes: 0%"
    """Margins, as in attnbench compare --gate."""
    margin: fields.Margin = USUAL_MARGIN
    fail_on_undecided: Annotated[bool, Option()] = False
    """Also exit 3 if a case is not confirmed."""
    baseline: Annotated[str | None, Option("RUN")] = None
    """Earlier run on this machine instead of BASE, or last:5."""
    step: Annotated[Literal["measure", "judge"] | None, Option(of=Spelling.SHELL)] = None
    """Only this step: measure into --output, or judge what is there (default: both)."""
    output: Annotated[Path | None, Option("DIR", fields.OUTPUT, short="-o", also=("out",))] = None
    """Folder for all files (default: results/gate-TIME)."""
    wait: fields.Wait = False
    wait_idle: fields.WaitIdle = None
    quiet: fields.Quiet = False

    def __post_init__(self) -> None:
        out = self.output
        if out is not None and not str(out).isprintable():  # it becomes a line of GITHUB_OUTPUT
            raise BadInput(
                f"{option('output')}: found {shown(str(out))}; wanted a path without line breaks"
            )
        if self.step == "judge" and out is None:
            raise BadInput("--step judge: wanted --output DIR, the folder that was measured into")
        read_margins(self.gate)  # before anything is measured
        margin_ratio(self.margin)


# ---- measure -------------------------------------------------------------------------------------


def measure(request: GateRequest, out: Path) -> None:
    """Into out/head and out/base: base, head, head, base, base, head, ...

    A turn is one run of each, directly after each other, so that slow drift of the machine affects
    both equally. Raises Refusal.
    """
    from ..devices.load import worker_threads
    from ..terminal.idle import await_idle
    from ..terminal.progress import say

    how = RunRequest(**{name: getattr(request, name) for name in OF_BOTH})
    command = ["run", _scenario(request), *words(how)]
    device = "elsewhere" if request.threads else request.device or "auto"
    with _ended_by_signals(), _only_writer(out), base_folder(request, out) as base:
        await_idle(request.wait_idle, quiet=request.quiet)
        sides = {"head": request.head} if base is None else {"base": base, "head": request.head}
        with worker_threads(device) as few_threads:  # the same for both
            if few_threads and not request.quiet:
                say(f"note: {few_threads}", stderr=True)
            for turn in range(1 if base is None else request.turns):
                for side in reversed(sides) if turn % 2 else sides:
                    if base is not None and not request.quiet:
                        say(f"turn {turn + 1} of {request.turns}: {side}", stderr=True)
                    seeded = [*command, "--seed", str(turn)]
                    code = _measured(request, side, sides[side], seeded, out)
                    if code and (why := _why_nothing_is_ok(out / side)) and base is not None:
                        said = f"{side}: none of its cases has a result; {why}"
                        raise Refusal(said, exit_code=code)


def _scenario(request: GateRequest) -> str:
    """Raises BadInput."""
    head = request.head
    if not head.is_dir():
        raise BadInput(f"{head}: no such folder; wanted the checkout that is judged")
    usual = (str(head / name) for name in USUAL_SCENARIOS if (head / name).is_file())
    if (scenario := request.scenario or next(usual, None)) is None:
        raise BadInput(
            f"{option('scenario')}: not given, and {head} has no {' or '.join(USUAL_SCENARIOS)};"
            " wanted a file, or a shipped one such as quickstart"
        )
    return scenario


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP, unless ignored, end what runs and remove the worktree, as Ctrl-C does."""

    def end(number: int, _: FrameType | None) -> None:
        raise Refusal(f"stopped by {signal.Signals(number).name}", exit_code=128 + number)

    is_main = threading.current_thread() is threading.main_thread()  # Python's rule
    some = (signal.SIGTERM, signal.SIGHUP) if is_main else ()
    ours = [number for number in some if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in ours:
            signal.signal(number, end)
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _only_writer(out: Path) -> Iterator[None]:
    """Hold the folder: runs of two at once would count as turns of one. Raises Refusal."""
    from ..rows.run_store import writer_lock

    with unless_refused(out, f"choose another with {option('output', 'DIR')}", "cannot be made"):
        refuse_way_out(out)
        out.mkdir(parents=True, exist_ok=True)
    lock = writer_lock(out)
    try:
        if (out / "head").exists() or (out / "base").exists():
            raise BadInput(
                f"{out}: has runs already, which would count as turns; remove it, or choose another"
                f" with {option('output', 'DIR')}"
            )
        yield
    finally:
        lock.release()


def _measured(
    request: GateRequest, side: str, checkout: Path, command: list[str], out: Path
) -> int:
    """By the checkout's code and backends. 1 is no failure of a side: a failed case has a row."""
    environment = dict(os.environ)
    if request.code:
        paths = [str(checkout.resolve() / request.code), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    if request.backend_dir:
        environment["ATTNBENCH_BACKENDS"] = str(checkout.resolve() / request.backend_dir)
    python = (request.base_python if side == "base" else None) or request.python or sys.executable
    attnbench = [python, *SAFE_PATH, "-m", "attnbench"]
    try:
        done = run_command(
            [*attnbench, *command, "--quiet", "--out", str(out / side)],
            env=environment,
            show_errors=True,
        )
    except OSError as error:
        raise BadInput(
            f"{python}: does not run ({error.strerror}); wanted an interpreter with attnbench"
        ) from None
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    if code not in (0, 1):
        said = f"{side} could not be measured; see the message above (exit code {code})"
        raise Refusal(f"{checkout}: {said}", exit_code=code)
    write_whole(out / f"{side}.code", f"{code}\n")
    return code


@contextmanager
def base_folder(request: GateRequest, out: Path) -> Iterator[Path | None]:
    """BASE as a folder: itself, or a worktree of the commit it names, removed afterwards."""
    base, head = request.base, request.head
    if not base or Path(base).is_dir():
        yield Path(base) if base else None
        return
    commit = ("rev-parse", "--verify", "-q", f"{base}^{{commit}}")
    if base[0] == "-" or _git(head, *commit) is None:
        raise BadInput(
            f"{shown(base)}: neither a folder nor a commit of {head}; wanted the checkout to"
            " compare with"
        )
    tree = (out / "base-checkout").absolute()
    remove = ("worktree", "remove", "--force", str(tree))
    _git(head, *remove)  # one that a killed gate left
    if _git(head, "worktree", "add", "--quiet", "--detach", str(tree), base) is None:
        raise EnvironmentUnmet(f"{tree}: git cannot make a worktree of {shown(base)} there")
    try:
        yield tree / (_git(head, "rev-parse", "--show-prefix") or "")
    finally:
        _git(head, *remove)


def _git(folder: Path, *words: str) -> str | None:
    """What git prints; None if it fails, or is not installed."""
    if (git := shutil.which("git")) is None:
        return None
    done = run_command([git, "-C", str(folder), *words])
    return done.stdout.strip() if done.returncode == 0 else None


def _why_nothing_is_ok(folder: Path) -> str:
    """The first case that failed in these runs, and why; "" if one of any has a result."""
    from ..rows.record import FAILURES, Status
    from ..rows.run_files import read_rows

    rows = [row for run in runs_in(folder) for row in read_rows(run)]
    if any(row["status"] == Status.OK for row in rows):
        return ""
    failed = (row for row in rows if row["status"] in FAILURES)
    return next((f"{one['case']}: {visible(one['reason'])}" for one in failed), "")
