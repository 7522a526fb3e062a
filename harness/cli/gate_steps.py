"""The two steps of `attnbench gate`: measure two checkouts in turns, and judge what they took.

A checkout is measured by `attnbench run` in a process of its own, with its code and backends.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from ..files.errors import BadInput, EnvironmentUnmet, Refusal, shown
from ..process.interpreter import SAFE_PATH
from .options import (
    DEFAULT_ROOT,
    HOW,
    WHAT,
    Device,
    PlanName,
    Quiet,
    argument,
    device_option,
    option,
)

if TYPE_CHECKING:
    from ...reports.comparison.compare import Comparison

JUDGING = "Judging"
MARGINS = "latency: 5%, peak_bytes: 0%"
STEPS = MEASURE, JUDGE = "measure", "judge"
VERDICTS = {0: "passed", 3: "failed", 6: "undecided"}
ENDING = signal.SIGTERM, signal.SIGHUP
SUMMARY_BYTES = 1_000_000  # GitHub discards a summary of more than 1024 KiB


def new_folder() -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return DEFAULT_ROOT / f"gate-{stamp}-{secrets.token_hex(4)}"  # two starts never share one


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How both are measured and judged. `baseline`: an earlier run, if no base was measured."""

    turns: Annotated[
        int,
        option(
            "--turns",
            "How often each is measured; fewer than 3 can hardly decide anything.",
            HOW,
            min=1,
            max=1000,
        ),
    ] = 5
    plan: PlanName = None
    device: Annotated[
        Device | None, device_option("Where to measure, instead of where the scenario says.")
    ] = None
    calibrate: Annotated[
        bool,
        option("--calibrate", "Run attnbench selfcheck first, so that a margin can be noise.", HOW),
    ] = False
    margins: Annotated[
        str, option("--gate FILE|EXPR", "The margins, as for attnbench compare --gate.", JUDGING)
    ] = MARGINS
    fail_on_undecided: Annotated[
        bool, option("--fail-on-undecided", "Exit 3 also if a case is undecided.", JUDGING)
    ] = False
    baseline: Annotated[
        str | None,
        option(
            "--baseline RUN",
            "Instead of BASE: a run that was measured earlier on this machine.",
            JUDGING,
        ),
    ] = None
    quiet: Quiet = False

    @property
    def options(self) -> list[str]:
        given = {"--plan": self.plan, "--device": self.device}
        return [word for name, value in given.items() if value for word in (name, value)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkouts:
    """What is measured; `base`: "" for none."""

    base: Annotated[
        str,
        argument(
            "BASE",
            "Checkout to compare with: a folder, or a commit, branch or tag of HEAD's"
            " repository. Empty: HEAD alone.",
        ),
    ]
    head: Annotated[Path, argument("HEAD", "Checkout that is judged.")] = Path()
    code: Annotated[
        str | None,
        option(
            "--code DIR",
            "Folder below each checkout for PYTHONPATH, if the code is not installed.",
            WHAT,
        ),
    ] = None
    backend_dir: Annotated[
        str | None,
        option(
            "--backend-dir DIR",
            "Folder below each checkout with your own backends (ATTNBENCH_BACKENDS).",
            WHAT,
        ),
    ] = None
    python: Annotated[str, option("--python PATH", "Interpreter that measures.", HOW)] = (
        sys.executable
    )
    base_python: Annotated[
        str | None,
        option("--base-python PATH", "Another one for BASE, to compare versions of packages.", HOW),
    ] = None

    def environment(self, checkout: Path) -> dict[str, str]:
        """Of a process that measures with a checkout's code and backends."""
        environment = dict(os.environ)
        if self.code:
            paths = [str(checkout.resolve() / self.code), environment.get("PYTHONPATH", "")]
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        if self.backend_dir:
            environment["ATTNBENCH_BACKENDS"] = str(checkout.resolve() / self.backend_dir)
        return environment


# ---- measure -------------------------------------------------------------------------------------


def measure(scenario: str, checkouts: Checkouts, settings: Settings, out: Path) -> None:
    """Into out/head and out/base: base, head, head, base, base, head, ...

    A turn is one run of each, directly after each other, so that slow drift of the machine affects
    both equally. Raises BadInput, and typer.Exit where a side could not be measured.
    """
    if not checkouts.head.is_dir():
        raise BadInput(f"{checkouts.head}: no such folder; wanted the checkout that is judged")
    _refuse_used(out)
    with _ended_by_signals(), base_folder(checkouts, out) as base, _only_writer(out):
        if settings.calibrate:
            _selfcheck(checkouts, settings, out)
        sides = {"head": (checkouts.head, checkouts.python)}
        if base is None:
            _run("head", *sides["head"], 0, scenario, checkouts, settings, out)
            return
        sides["base"] = (base, checkouts.base_python or checkouts.python)
        for turn in range(settings.turns):
            for side in ("head", "base") if turn % 2 else ("base", "head"):
                if not settings.quiet:
                    typer.echo(f"turn {turn + 1} of {settings.turns}: {side}", err=True)
                _run(side, *sides[side], turn, scenario, checkouts, settings, out)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end what runs and remove the worktree, as Ctrl-C does."""

    def end(number: int, _: FrameType | None) -> None:
        raise typer.Exit(128 + number)

    ours = [n for n in ENDING if signal.getsignal(n) is signal.SIG_DFL]  # not under nohup
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
    from ..store.run_store import writer_lock

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{out}: cannot be made ({error.strerror}); choose another with --out DIR"
        ) from None
    lock = writer_lock(out)
    try:
        _refuse_used(out)
        yield
    finally:
        lock.release()


def _refuse_used(out: Path) -> None:
    if (out / "head").exists() or (out / "base").exists():
        raise BadInput(
            f"{out}: has runs already, which would count as turns; remove it, or choose another"
            " with --out DIR"
        )


def _run(
    side: str,
    checkout: Path,
    python: str,
    turn: int,
    scenario: str,
    checkouts: Checkouts,
    settings: Settings,
    out: Path,
) -> None:
    """One run of one side. A failed case (exit code 1) has a row, which the comparison reads."""
    words = ["run", scenario, "--quiet", *settings.options]
    words += ["--seed", str(turn), "--out", str(out / side)]
    code = _attnbench(python, words, checkouts.environment(checkout))
    if code not in (0, 1):
        typer.echo(
            f"{checkout}: {side} could not be measured; see the message above (exit code {code})",
            err=True,
        )
        raise typer.Exit(code)
    (out / f"{side}.code").write_text(f"{code}\n")


def _selfcheck(checkouts: Checkouts, settings: Settings, out: Path) -> None:
    """A noise floor for margins. 1: equals were told apart; what it found still counts."""
    words = ["selfcheck", "--quiet", "--out", str(out / "head")]
    words += ["--device", settings.device] if settings.device else []
    code = _attnbench(checkouts.python, words, checkouts.environment(checkouts.head))
    if code not in (0, 1):
        raise typer.Exit(code)


def _attnbench(python: str, words: list[str], environment: Mapping[str, str]) -> int:
    try:
        done = subprocess.run(
            [python, *SAFE_PATH, "-m", "attnbench", *words],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=False,
        )
    except OSError as error:
        raise BadInput(
            f"{python}: does not run ({error.strerror}); wanted an interpreter with attnbench"
        ) from None
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


@contextmanager
def base_folder(checkouts: Checkouts, out: Path) -> Iterator[Path | None]:
    """BASE as a folder: itself, or a worktree of the commit it names, removed afterwards."""
    base, head = checkouts.base, checkouts.head
    if not base or Path(base).is_dir():
        yield Path(base) if base else None
        return
    if (
        base.startswith("-")
        or _git(head, "rev-parse", "--verify", "-q", f"{base}^{{commit}}") is None
    ):
        raise BadInput(
            f"{shown(base)}: neither a folder nor a commit of {head}; wanted the checkout to"
            " compare with"
        )
    below = _git(head, "rev-parse", "--show-prefix") or ""
    tree = (out / "base-checkout").absolute()
    tree.parent.mkdir(parents=True, exist_ok=True)
    if _git(head, "worktree", "add", "--quiet", "--detach", str(tree), base) is None:
        raise EnvironmentUnmet(f"{tree}: git cannot make a worktree of {shown(base)} there")
    try:
        yield tree / below
    finally:
        _git(head, "worktree", "remove", "--force", str(tree))


def _git(folder: Path, *words: str) -> str | None:
    """What git prints; None if it fails, or is not installed."""
    git = shutil.which("git")
    if git is None:
        return None
    command = [git, "-C", str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


# ---- judge ---------------------------------------------------------------------------------------


def judge(settings: Settings, out: Path) -> int:
    """Compare, and write summary.md, compare.json, report.md and report.html into `out`.

    In a job of GitHub (GITHUB_STEP_SUMMARY, GITHUB_OUTPUT) summary and verdict go there, else the
    comparison goes to stdout. Returns the exit code. Raises BadInput.
    """
    run = out / "head" / "latest"
    if not run.exists():
        raise BadInput(f"{out}: has no run of HEAD; measure first, without --step judge")
    found, code = _compared(settings, out, run)
    texts = _written(found, out, run)
    in_job = os.environ.get("GITHUB_STEP_SUMMARY")
    if in_job:
        with Path(in_job).open("a") as file:
            file.write(texts)
    elif found is not None:
        from .compare import Shape, print_comparison

        print_comparison(found, Shape.TABLE)
    if not in_job:
        typer.echo(f"{out / 'summary.md'} {out / 'report.html'}")
    verdict = VERDICTS.get(code, "none") if found is not None else "none"
    if in_output := os.environ.get("GITHUB_OUTPUT"):
        with Path(in_output).open("a") as file:
            file.write(f"code={code}\nverdict={verdict}\nreport={out / 'report.html'}\n")
    _annotate(verdict, settings.margins)
    return code


def _compared(settings: Settings, out: Path, run: Path) -> tuple["Comparison | None", int]:
    """The comparison and its exit code; without anything to compare with, that of the run."""
    from ...reports.comparison.compare import (
        DifferentDevices,
        NotComparable,
        compare_interleaved,
        compare_runs,
    )
    from ...reports.comparison.gate import Gate
    from ..store.names import find_run
    from .compare import EXIT_CODES, runs_in
    from .margins import read_margins

    gate = Gate(
        margins=read_margins(settings.margins), fail_on_undecided=settings.fail_on_undecided
    )
    try:
        if (out / "base").exists():
            sides = runs_in(str(out / "base")), runs_in(str(out / "head"))
            found = compare_interleaved(*sides, gate)
        elif settings.baseline:
            found = compare_runs(find_run(settings.baseline, DEFAULT_ROOT), run, gate)
        else:
            return None, int((out / "head.code").read_text())
    except (NotComparable, BadInput) as error:
        typer.echo(error, err=True)
        return None, BadInput.exit_code
    except (DifferentDevices, Refusal) as error:
        typer.echo(error, err=True)
        return None, EnvironmentUnmet.exit_code
    assert found.gate_result is not None
    return found, EXIT_CODES[found.gate_result.outcome]


def _written(found: "Comparison | None", out: Path, run: Path) -> str:
    """Write the files; returns the summary."""
    from ...reports.comparison import text
    from ...reports.pages import html, markdown
    from ...reports.pages.report import open_report
    from ..files.safe_files import write_whole

    (out / "compare.json").unlink(missing_ok=True)
    if found is not None:
        write_whole(out / "compare.json", text.as_json(found))
    opened = open_report([run.resolve()])
    write_whole(out / "report.html", html.render(opened))
    page = markdown.render(opened)
    write_whole(out / "report.md", page)
    summary = text.markdown(found) if found is not None else ""
    most = int(os.environ.get("MOST_BYTES", SUMMARY_BYTES))
    if len(summary.encode()) + len(page.encode()) <= most:
        summary += f"\n{page}"
    else:
        summary += "\nThe report is too long for a summary; the page has it.\n"
    write_whole(out / "summary.md", summary)
    return summary


def _annotate(verdict: str, margins: str) -> None:
    """A line for whoever reads no summary; in a job of GitHub an annotation."""
    on_github = bool(os.environ.get("GITHUB_ACTIONS"))
    margins = " ".join(margins.split())  # a line of its own could be a command of the job
    said = {
        "failed": ("error", f"slower, or more memory, by more than {margins}; see the summary"),
        "undecided": ("warning", f"nothing decided about {margins}; see the summary"),
    }
    if verdict in said:
        kind, sentence = said[verdict]
        sys.stderr.write(f"{f'::{kind} title=attnbench::' if on_github else ''}{sentence}\n")
