"""One call: its steps one after the other, each cut off in time, and an archive after each."""

import json
import os
import shlex
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .steps import ATTNBENCH, Step

ROOT = Path(__file__).parents[2]
GRACE_S = 10.0  # from the signal that ends a command in order to the one that ends it at once
ARCHIVE_S = 10.0  # some MB: less than a second
PAGE_S, LEAST_S = 30.0, 5.0  # of one, which takes 3 to 6 s
FINISHED, FAILED, UNFINISHED = 0, 1, 3  # exit codes
REFUSED = (2, 4, 5)  # exit codes of attnbench, if nothing was measured
IDENTITY = ("gpu", "capability", "driver", "python", "torch", "triton")
"""Where these differ, nothing that was measured belongs together."""


class Ended(NamedTuple):
    """`code` as a shell has it: 128 and the number of the signal that ended it."""

    code: int
    spent_s: float
    cut_off: bool


def execute(
    command: Sequence[str], log: Path, limit_s: float, environment: Mapping[str, str]
) -> Ended:
    """Its output goes to the end of `log`. It has ended, with all that it started, after `limit_s`
    seconds: GRACE_S before it gets SIGINT, at which attnbench and pytest end in order.
    """
    begin, cut_off = time.monotonic(), False
    with log.open("ab") as file:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # A shell starts background jobs with SIGINT ignored, and they what they start.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )
        try:
            process.wait(max(1.0, limit_s - GRACE_S))
        except subprocess.TimeoutExpired:
            cut_off = True
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    code = process.returncode
    return Ended(code if code >= 0 else 128 - code, time.monotonic() - begin, cut_off)


@dataclass(kw_only=True)
class Call:
    """`deadline_s`: by `clock`, when the archive is written. `machine`: facts that go with it.

    `values` stand for the placeholders of a step's words. `rehearsed`: small, on the CPU, with
    steps that may take `patience` times as long.
    """

    every: Sequence[Step]
    root: Path
    archive: Path
    machine: Mapping[str, Any]
    deadline_s: float
    values: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    rehearsed: bool = False
    patience: float = 1.0
    clock: Callable[[], float] = time.monotonic
    execute: Callable[[Sequence[str], Path, float, Mapping[str, str]], Ended] = execute
    say: Callable[[str], None] = print
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)

    def run(self) -> int:
        """The exit code: FAILED if a step did, UNFINISHED if another call has more to do."""
        self.load()
        try:
            for step in self.every:
                self.take(step)
        finally:
            self.save()
        return FAILED if self.failed() else UNFINISHED if self.unfinished() else FINISHED

    def take(self, step: Step) -> None:
        """Run it, or say why not; then the pages of its runs."""
        noted = self.steps.setdefault(step.name, {"state": "not started", "runs": []})
        if noted["state"] == "ended":
            self.say(f"{step.name}: ended before with {noted['code']}")
        elif (limit_s := self.limit_s(step)) < step.least_s:
            self.say(f"{step.name}: not started, {max(0.0, limit_s):.0f} s are left")
        else:
            code = None
            if step.resumes and noted["runs"]:
                again = ("run", "--resume", f"{{runs}}/{noted['runs'][-1]}", "--out", "{runs}")
                code = self.start(step, (*ATTNBENCH, *again), limit_s)
            if code is None or code in REFUSED:  # such as: other versions of packages
                self.start(step, self.words(step), self.limit_s(step))
        self.write_pages(noted)

    def words(self, step: Step) -> tuple[str, ...]:
        return (*step.words, *(step.cpu if self.rehearsed else step.gpu))

    def filled(self, words: Sequence[str]) -> list[str]:
        """With this machine's values in place of {python}, {runs} and so on."""
        found = []
        for word in words:
            for name, value in self.values.items():
                word = word.replace(f"{{{name}}}", value)  # noqa: PLW2901
            found.append(word)
        return found

    def limit_s(self, step: Step) -> float:
        """What it may take: its most, or all that is left beside the most of later steps."""
        left_s = self.left_s() - PAGE_S
        unfinished = self.unfinished()
        later = self.every[self.every.index(step) + 1 :]
        later_s = sum(one.most_s for one in later if one.name in unfinished)
        return min(left_s, max(step.most_s * self.patience, left_s - later_s * self.patience))

    def left_s(self) -> float:
        """Until the archive must be written."""
        return self.deadline_s - self.clock() - ARCHIVE_S

    def start(self, step: Step, words: Sequence[str], limit_s: float) -> int:
        command, noted = self.filled(words), self.steps[step.name]
        noted |= {"state": "started", "command": command, "before": self.runs()}
        self.save()
        self.say(f"{step.name}: at most {limit_s:.0f} s")
        log = self.log(step.name)
        with log.open("a") as file:
            file.write(f"\n{time.strftime('%FT%T')} $ {shlex.join(command)}\n")
        code, spent_s, cut_off = self.execute(
            command, log, limit_s, {**self.environment, **step.environment}
        )
        state = "cut off" if cut_off else "ended"
        self.note_end(noted, {"state": state, "code": code, "spent_s": round(spent_s, 1)})
        self.save()
        self.say(f"{step.name}: {state} with {code} after {spent_s:.0f} s")
        return code

    def note_end(self, noted: dict[str, Any], how: Mapping[str, Any]) -> None:
        """Runs that are new since it began are its own."""
        before = noted.pop("before")
        noted |= {**how, "runs": noted["runs"] + [run for run in self.runs() if run not in before]}

    def write_pages(self, noted: dict[str, Any]) -> None:
        """Of its runs that have none, or one older than their rows."""
        for run in noted["runs"]:
            page, rows = (self.root / "runs" / run / name for name in ("report.html", "rows.jsonl"))
            limit_s = min(PAGE_S * self.patience, self.left_s())
            if limit_s < LEAST_S or (
                page.exists() and page.stat().st_mtime >= rows.stat().st_mtime
            ):
                continue
            words = ("show", f"{{runs}}/{run}", "--format", "html", "--out", "{runs}")
            command = self.filled((*ATTNBENCH, *words))
            ended = self.execute(command, self.log("pages"), limit_s, self.environment)
            noted.setdefault("pages", {})[run] = ended.code

    def runs(self) -> list[str]:
        """The names of all runs; `latest` is a link."""
        found = (one.parent for one in (self.root / "runs").glob("*/run.json"))
        return sorted(one.name for one in found if not one.is_symlink())

    def log(self, name: str) -> Path:
        folder = self.root / "day" / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{name}.log"

    # ---- what is kept ----------------------------------------------------------------------------

    def load(self) -> None:
        """What earlier calls did here. That of another machine is moved away: nothing of it belongs
        to this one.
        """
        folder = self.root / "day"
        if not (folder / "state.json").exists():
            return
        state = json.loads((folder / "state.json").read_text())
        if state["machine"] != self.identity():
            number = sum(1 for _ in self.root.glob("day-*")) + 1
            folder.rename(self.root / f"day-{number}")
            self.say(f"day: its steps ran on another machine, now in day-{number}")
            return
        self.steps = state["steps"]
        for noted in self.steps.values():
            if noted["state"] == "started":  # the call was killed
                self.note_end(noted, {"state": "cut off", "code": None})

    def save(self) -> None:
        """State and archive: after every step, in case that this process is killed."""
        state = {"machine": self.identity(), "steps": self.steps}
        for name, content in (("state", state), ("machine", self.machine)):
            partial = self.log("").with_name(f".{name}")
            partial.write_text(json.dumps(content, indent=1) + "\n")
            partial.replace(self.root / "day" / f"{name}.json")
        self.archive.parent.mkdir(parents=True, exist_ok=True)
        partial = self.archive.with_name(f".{self.archive.name}")
        with tarfile.open(partial, "w:gz", compresslevel=6) as tar:
            for folder in ("day", "runs"):
                if (self.root / folder).exists():
                    tar.add(self.root / folder, f"{self.root.name}/{folder}", filter=no_link)
        partial.replace(self.archive)

    def identity(self) -> dict[str, Any]:
        return {name: self.machine.get(name) for name in IDENTITY}

    # ---- how it ended ----------------------------------------------------------------------------

    def failed(self) -> list[str]:
        """Steps that ended with another code than 0, or a page of theirs."""
        forgiven = {one.name for one in self.every if one.judges and self.rehearsed}
        return [
            name
            for name, noted in self.steps.items()
            if any(noted.get("pages", {}).values())
            or (noted["state"] == "ended" and noted["code"] > (name in forgiven))
        ]

    def unfinished(self) -> list[str]:
        states = {name: noted["state"] for name, noted in self.steps.items()}
        return [one.name for one in self.every if states.get(one.name) != "ended"]


def no_link(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.issym() else member
