"""One call: its steps one after the other, each cut off in time, and an archive at the end whatever
happened.
"""

import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import archive
from .commands import Ended, execute
from .machine import IDENTITY
from .steps import ATTNBENCH, Step

ARCHIVE_S = 10.0  # some MB: less than a second
DAY = "day"  # the folder of the state, beside the runs
REPORT_S, LEAST_REPORT_S = 30.0, 5.0  # one page takes 3 to 6 s
FINISHED, FAILED, UNFINISHED = 0, 1, 3  # exit codes
REFUSED = (2, 4, 5)  # exit codes of attnbench, if nothing was measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What the placeholders of a step's words mean here; `jobs`: tests at once.

    `patience`: how many times as long as on a GPU's machine a step may take.
    """

    python: str
    device: str
    memory_gib: float
    jobs: int
    root: Path
    patience: float = 1.0

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    def command(self, step: Step) -> list[str]:
        return self.filled((*step.words, *(step.gpu if self.device == "cuda" else step.cpu)))

    def resuming(self, run: str) -> list[str]:
        words = ("run", "--resume", "{runs}/" + run, "--out", "{runs}")
        return self.filled((*ATTNBENCH, *words))

    def reporting(self, run: str) -> list[str]:
        return self.filled(
            (*ATTNBENCH, "show", "{runs}/" + run, "--format", "html", "--out", "{runs}")
        )

    def filled(self, words: Sequence[str]) -> list[str]:
        values = {"{python}": self.python, "{device}": self.device}
        values |= {
            "{memory_gib}": f"{self.memory_gib:.1f}",
            "{jobs}": str(self.jobs),
            "{runs}": str(self.runs),
        }
        return [_filled(word, values) for word in words]

    def folders(self) -> list[str]:
        """The names of all runs."""
        if not self.runs.is_dir():
            return []
        found = (one.parent for one in self.runs.glob("*/run.json"))
        return sorted(one.name for one in found if not one.is_symlink())  # such as `latest`


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


@dataclass(slots=True, kw_only=True)
class Call:
    """`deadline_s`: by `clock`, when the archive is written. `machine`: facts that go with it."""

    every: Sequence[Step]
    place: Place
    archive: Path
    machine: Mapping[str, Any]
    deadline_s: float
    environment: Mapping[str, str]
    clock: Callable[[], float] = time.monotonic
    execute: Callable[[Sequence[str], Path, float, Mapping[str, str]], Ended] = execute
    say: Callable[[str], None] = print
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    reports: dict[str, int] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.place.root / DAY

    def run(self) -> int:
        """The exit code: FAILED if a step did, UNFINISHED if another call has more to do."""
        self.load()
        try:
            for step in self.every:
                self.take(step)
            self.write_reports()
        finally:
            self.save()
        return self.exit_code()

    # ---- steps -----------------------------------------------------------------------------------

    def take(self, step: Step) -> None:
        """Run it, or say why not."""
        known = self.steps.get(step.name, {})
        if known.get("state") == "ended":
            self.say(f"{step.name}: ended before with {known['code']}")
            return
        limit_s = self.limit_s(step)
        if limit_s < step.least_s:
            self.say(f"{step.name}: not started, {max(0.0, limit_s):.0f} s are left")
            self.steps.setdefault(step.name, {"state": "not started", "runs": []})
            return
        run = known["runs"][-1] if step.resumes and known.get("runs") else None
        ended = None
        if run:
            ended = self.start(step, self.place.resuming(run), limit_s)
        if ended is None or ended.code in REFUSED:  # such as: other versions of packages
            limit_s -= ended.spent_s if ended else 0.0
            self.start(step, self.place.command(step), limit_s)
        self.write_reports()

    def limit_s(self, step: Step) -> float:
        """What it may take: its most, or all that is left beside the most of later steps."""
        left_s = self.left_s() - REPORT_S
        later = self.every[self.every.index(step) + 1 :]
        unfinished = set(self.unfinished())
        later_s = sum(one.most_s for one in later if one.name in unfinished)
        patience = self.place.patience
        return min(left_s, max(step.most_s * patience, left_s - later_s * patience))

    def start(self, step: Step, command: list[str], limit_s: float) -> Ended:
        runs = self.steps.get(step.name, {}).get("runs", [])
        noted = {
            "state": "started",
            "command": command,
            "started_utc": datetime.now(UTC).isoformat(timespec="seconds"),
            "limit_s": limit_s,
            "runs": runs,
            "runs_before": self.place.folders(),
        }
        self.steps[step.name] = noted
        self.save()
        self.say(f"{step.name}: at most {limit_s:.0f} s")
        log = self.folder / "logs" / f"{step.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as file:
            file.write(f"\n{noted['started_utc']} $ {shlex.join(command)}\n")
        ended = self.execute(command, log, limit_s, {**self.environment, **step.environment})
        noted |= {
            "state": "cut off" if ended.cut_off else "ended",
            "code": ended.code,
            "spent_s": round(ended.spent_s, 1),
            "runs": self.runs_of(noted),
        }
        del noted["runs_before"]
        self.save()
        self.say(f"{step.name}: {noted['state']} with {ended.code} after {ended.spent_s:.0f} s")
        return ended

    def runs_of(self, noted: Mapping[str, Any]) -> list[str]:
        """Of a step; those of one that has not ended are the ones that are new."""
        before = noted.get("runs_before")
        new = [] if before is None else [run for run in self.place.folders() if run not in before]
        return [*noted["runs"], *new]

    def write_reports(self) -> None:
        """The page of every run that has none, or rows newer than it."""
        for run in self.runs():
            folder = self.place.runs / run
            page, rows = folder / "report.html", folder / "rows.jsonl"
            if page.exists() and rows.exists() and page.stat().st_mtime >= rows.stat().st_mtime:
                continue
            limit_s = min(REPORT_S * self.place.patience, self.left_s())
            if limit_s < LEAST_REPORT_S:
                self.say(f"no time for the page of {run}; `attnbench show --format html` writes it")
                return
            log = self.folder / "logs" / "reports.log"
            ended = self.execute(self.place.reporting(run), log, limit_s, self.environment)
            self.reports[run] = ended.code

    def left_s(self) -> float:
        """Until the archive must be written."""
        return self.deadline_s - self.clock() - ARCHIVE_S

    def runs(self) -> list[str]:
        """Of all steps, each once."""
        found = [run for noted in self.steps.values() for run in self.runs_of(noted)]
        return list(dict.fromkeys(found))

    # ---- what is kept ----------------------------------------------------------------------------

    def load(self) -> None:
        """What earlier calls did here. That of another machine is moved away: nothing of it belongs
        to this one.
        """
        path = self.folder / "state.json"
        if not path.exists():
            return
        state = json.loads(path.read_text())
        if state["machine"] != self.identity():
            number = 1
            while (other := self.folder.with_name(f"{DAY}-{number}")).exists():
                number += 1
            self.folder.rename(other)
            self.say(f"{DAY}: its steps ran on another machine, now in {other}")
            return
        self.steps, self.reports = state["steps"], state["reports"]
        for noted in self.steps.values():
            if noted["state"] == "started":  # the call was killed
                noted |= {"state": "cut off", "code": None, "runs": self.runs_of(noted)}
                del noted["runs_before"]

    def save(self) -> None:
        """State and archive: after every step, in case that this process is killed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        state = {
            "machine": self.identity(),
            "steps": self.steps,
            "reports": self.reports,
        }
        for name, content in (("state.json", state), ("machine.json", self.machine)):
            partial = self.folder / f".{name}"
            partial.write_text(json.dumps(content, indent=1) + "\n")
            partial.replace(self.folder / name)
        archive.write(self.archive, self.place.root, DAY, self.runs())

    def identity(self) -> dict[str, Any]:
        return {name: self.machine.get(name) for name in IDENTITY}

    # ---- how it ended ----------------------------------------------------------------------------

    def failed(self) -> list[str]:
        """Steps and pages that ended with another code than 0."""
        rehearsed = self.place.device == "cpu"
        forgiven = {one.name for one in self.every if one.judges and rehearsed}
        steps = [
            name
            for name, noted in self.steps.items()
            if noted["state"] == "ended" and noted["code"] > (name in forgiven)
        ]
        pages = [f"page of {run}" for run, code in self.reports.items() if code]
        return steps + pages

    def unfinished(self) -> list[str]:
        states = {name: noted["state"] for name, noted in self.steps.items()}
        return [one.name for one in self.every if states.get(one.name) != "ended"]

    def exit_code(self) -> int:
        return FAILED if self.failed() else UNFINISHED if self.unfinished() else FINISHED
