"""One try of an attack: a folder, random numbers, and attnbench as a user starts it."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import IO, Any

import psutil

from tests.search_path import searched

from .outcome import Outcome
from .rows import check_rows, last_statuses, planned, whole_lines

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-P", "-m", "attnbench")
CODES = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BY_SIGNAL = {129, 130, 143}
EXIT_CODES = frozenset(map(int, re.findall(r"^\| (\d+) \|", CODES, re.M))) | BY_SIGNAL
"""Those that are documented."""
TRACEBACK = re.compile(
    rb"^(?:\+ )?(?:Traceback \(most recent|Exception ignored|Fatal Python)", re.M
)
LIMIT_S = 90.0  # of one command; more is a hang
GONE_S = 30.0  # the kernel's and our own time to end what a killed command has started
SMALL = (
    *("--backends", "fused,sdpa", "--batch", "1", "--seq-len", "16,32", "--d-model", "16"),
    *("--heads", "2", "--device", "cpu"),
    *("--set", "plan={processes: 1, min_blocks: 12, max_blocks: 12, budget_s: 0.1}"),
)
"""A run of four cases. With few blocks a busy machine can delay each of them, and then the clock of
the worker is called wrong.
"""


class Trial:
    """What an attack gets. It notes what it found in `outcome`.

    `number` counts the tries of an attack. `finished` is a run of SMALL that ended well, to copy.
    """

    def __init__(self, folder: Path, number: int, random: Random, finished: Path) -> None:
        self.folder = folder
        self.number = number
        self.random = random
        self.finished = finished
        self.results = folder / "results"
        self.outcome = Outcome()
        self._commands = 0
        self._said: dict[int, Path] = {}
        (folder / "locks").mkdir(exist_ok=True)

    def environment(self, **extra: str) -> dict[str, str]:
        """Locks and caches of its own: tries run side by side."""
        ours = {
            "PYTHONPATH": searched(ROOT / ".package"),
            "ATTNBENCH_LOCKS": str(self.folder / "locks"),
            "ATTNBENCH_CACHE": str(self.folder / "locks"),
            "OMP_NUM_THREADS": "1",
        }
        return {**os.environ, **ours, **extra}

    def start(
        self,
        *args: object,
        program: Collection[str] = COMMAND,
        env: dict[str, str] | None = None,
        stdout: IO[Any] | int | None = None,
        stderr: IO[Any] | int | None = None,
        before: Callable[[], None] | None = None,
    ) -> subprocess.Popen[bytes]:
        """`attnbench ARGS...`; what it prints goes to files of the try, unless given.

        `before` is called in the child before it begins.
        """
        self._commands += 1
        words = [*program, *map(str, args)]
        with (self.folder / "commands.txt").open("a", encoding="utf-8") as file:
            file.write(f"{self._commands}: {words}\n")
        out = self.folder / f"{self._commands}.out"
        with out.open("wb") as out_file, out.with_suffix(".err").open("wb") as error_file:
            process = subprocess.Popen(
                words,
                cwd=self.folder,
                env=self.environment(**(env or {})),
                stdin=subprocess.DEVNULL,
                stdout=out_file if stdout is None else stdout,
                stderr=error_file if stderr is None else stderr,
                preexec_fn=before,  # noqa: PLW1509 - a try has one thread
            )
        self._said[process.pid] = out
        return process

    def end(
        self,
        process: subprocess.Popen[bytes],
        allowed: Collection[int] = EXIT_CODES,
        limit_s: float = LIMIT_S,
    ) -> int:
        """Its exit code, once it has ended; what it said is judged."""
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.outcome.hangs += 1
            self.outcome.wrong.append(f"still running after {limit_s:g} s")
            process.kill()
            return process.wait()
        self.outcome.expect(code in allowed, f"exit code {code}, wanted one of {sorted(allowed)}")
        self.judge(self._said[process.pid].with_suffix(".err").read_bytes())
        return code

    def judge(self, said: bytes) -> None:
        """What stands on stderr: results on stdout may quote a backend's own traceback."""
        if TRACEBACK.search(said):
            self.outcome.tracebacks += 1
            last = said.strip().splitlines()[-1].decode(errors="replace")
            self.outcome.wrong.append(f"a traceback: {last[:300]}")

    def call(self, *args: object, allowed: Collection[int] = EXIT_CODES, **how: Any) -> int:
        return self.end(self.start(*args, **how), allowed)

    def said(self, suffix: str = "err") -> str:
        """By the command that was started last."""
        return (self.folder / f"{self._commands}.{suffix}").read_text(errors="replace")

    def runs(self) -> list[Path]:
        """Folders of runs that can be resumed."""
        return sorted(path.parent for path in self.results.glob("2*/run.json"))

    def wait_until(self, holds: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
        """Until something is so, or the command has ended, or hangs."""
        deadline = time.monotonic() + LIMIT_S
        while not holds() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)

    def rows_on_disk(self) -> int:
        return sum(len(whole_lines(run)) for run in self.results.glob("2*"))

    def measured(self) -> bool:
        """Whether there are runs, and every case of them has a final row."""
        ended = [(planned(run), last_statuses(run)) for run in self.runs()]
        return bool(ended) and all(
            last.get(case, "interrupted") != "interrupted"
            for cases, last in ended
            for case in cases
        )

    def complete(self, run: Path, allowed: Collection[int] = (0,), *more: str) -> None:
        """Resume a run to its end, and check its rows."""
        before = whole_lines(run)
        self.call("run", "--resume", run, *more, allowed=allowed)
        check_rows(run, self.outcome, before)

    def none_left(self) -> None:
        """Count and end what still runs. This process adopts orphans, so all are its children."""
        deadline = time.monotonic() + GONE_S
        while (alive := self._alive()) and time.monotonic() < deadline:
            time.sleep(0.02)
        for process in alive:
            self.outcome.left += 1
            with suppress(psutil.Error):
                self.outcome.wrong.append(f"still runs: {process.cmdline()}")
            with suppress(psutil.Error):
                process.kill()

    def _alive(self) -> list[psutil.Process]:
        found = psutil.Process().children(recursive=True)
        return [process for process in found if _runs(process)]


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
