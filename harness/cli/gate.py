"""`attnbench gate BASE HEAD`: measure two checkouts in turns on this machine, then compare them.

A checkout is measured by `attnbench run` in a process of its own, with its code and backends. The
action in .github/ and `make gate` call this verb; docs/ci.md has recipes.
"""

import os
import secrets
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from ..files.errors import BadInput, EnvironmentUnmet, Refusal, shown
from ..files.safe_files import refuse_way_out, write_whole
from ..process.command import run_command
from ..process.interpreter import SAFE_PATH
from . import completion
from .compare import EXIT_CODES, Shape, against, print_comparison, runs_in
from .idle import await_idle
from .options import (
    DEFAULT_ROOT,
    HOW,
    OUTPUT,
    WHAT,
    Device,
    PlanName,
    Quiet,
    Threads,
    WaitIdle,
    argument,
    device_option,
    own,
    own_option,
    switch,
)

if TYPE_CHECKING:
    from ...reports.comparison.compare import Comparison
    from ...reports.comparison.gate import Gate

VERDICTS = {0: "passed", 3: "failed", 6: "undecided"}
SUMMARY_BYTES = 1_000_000  # GitHub discards a summary of more than 1024 KiB
USUAL_SCENARIOS = ("gate.yaml", "bench.yaml", ".ci/gate.yaml")
JUDGING = "Judging"
STEPS = MEASURE, JUDGE = "measure", "judge"
BASE = (
    "Checkout to compare with, a folder or a commit; a commit, branch or tag is one of HEAD's"
    " repository. Empty: HEAD alone."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How both are measured and judged. `baseline`: an earlier run, if no base was measured."""

    turns: int = own_option(
        "--turns COUNT",
        "How often each is measured; fewer than 3 can hardly decide anything.",
        HOW,
        default=5,
        min=1,
        max=1000,
    )
    plan: PlanName = None
    device: Device | None = own(
        device_option("Where to measure, instead of where the scenario says.")
    )
    calibrate: bool = switch(
        "--calibrate", "Run attnbench selfcheck first, so that a margin can be noise.", HOW
    )
    margins: str = own_option(
        "--gate FILE|EXPR",
        "The margins, as for attnbench compare --gate.",
        JUDGING,
        default="latency: 5%, peak_bytes: 0%",
    )
    fail_on_undecided: bool = switch(
        "--fail-on-undecided", "Exit 3 also if a case is not confirmed.", JUDGING
    )
    baseline: str | None = own_option(
        "--baseline RUN",
        "Instead of BASE: an earlier run on this machine, or last:5.",
        JUDGING,
    )
    wait_idle: WaitIdle = None
    quiet: Quiet = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkouts:
    """What is measured; `base`: "" for none."""

    base: str = own(argument("BASE", BASE), MISSING)
    head: Path = own(argument("HEAD", "Checkout that is judged."), Path())
    code: str | None = own_option(
        "--code DIR",
        "Folder of each for PYTHONPATH; needed if the code is not installed.",
        WHAT,
    )
    backend_dir: str | None = own_option(
        "--backend-dir DIR",
        "Folder of each with your own backends; sets ATTNBENCH_BACKENDS.",
        WHAT,
    )
    python: str = own_option(
        "--python PATH", "Interpreter that measures.", HOW, default=sys.executable
    )
    base_python: str | None = own_option(
        "--base-python PATH", "Another one for BASE; so versions of packages are compared.", HOW
    )


def gate(
    checkouts: Checkouts,
    scenario: str | None = own_option(
        "--scenario SCENARIO",
        "A file or a shipped scenario. HEAD's gate.yaml or bench.yaml if not given.",
        WHAT,
        completion.scenarios,
    ),
    *,
    settings: Settings,
    threads: Threads = None,
    step: str | None = own_option(
        "--step " + "|".join(STEPS),
        "Only this step: measure into --output, or judge what is there. Both if not given.",
        JUDGING,
    ),
    out: Path | None = own_option(
        "--output -o --out DIR", "For runs, page, summary; results/gate-TIME if not given.", OUTPUT
    ),
) -> None:
    """Measure two checkouts in turns: did the code become slower? Base, head, head, base, ..., then
    time and memory of HEAD are judged.

    Exit code 0 if it passed, 3 if a case is worse, 6 if nothing was decided, 1 if a case failed and
    nothing was compared.
    """
    if step is not None and step not in STEPS:
        raise BadInput(f"--step: found {step!r}; wanted {' or '.join(STEPS)}")
    if out is not None and not str(out).isprintable():  # it becomes a line of GITHUB_OUTPUT
        raise BadInput(f"--output: found {shown(str(out))}; wanted a path without line breaks")
    if step == JUDGE and out is None:
        raise BadInput("--step judge: wanted --output DIR, the folder that was measured into")
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    out = out or DEFAULT_ROOT / f"gate-{stamp}-{secrets.token_hex(4)}"  # no two starts share one
    if step != JUDGE:
        measure(scenario, checkouts, settings, out)
    if step != MEASURE:
        raise typer.Exit(judge(settings, out))


# ---- measure -------------------------------------------------------------------------------------


def measure(scenario: str | None, checkouts: Checkouts, settings: Settings, out: Path) -> None:
    """Into out/head and out/base: base, head, head, base, base, head, ...

    A turn is one run of each, directly after each other, so that slow drift of the machine affects
    both equally. Raises BadInput, and typer.Exit where a side could not be measured.
    """
    head = checkouts.head
    if not head.is_dir():
        raise BadInput(f"{head}: no such folder; wanted the checkout that is judged")
    usual = (str(head / name) for name in USUAL_SCENARIOS if (head / name).is_file())
    scenario = scenario or next(usual, None)
    if scenario is None:
        raise BadInput(
            f"--scenario: not given, and {head} has no {' or '.join(USUAL_SCENARIOS)}; wanted a"
            " file, or a shipped one such as quickstart"
        )
    given = {"--device": settings.device, "--plan": settings.plan}
    device, plan = ([name, value] if value else [] for name, value in given.items())
    with _ended_by_signals(), _only_writer(out), base_folder(checkouts, out) as base:
        await_idle(settings.wait_idle, quiet=settings.quiet)
        sides = {"head": (head, checkouts.python)}
        if base is not None:
            sides = {"base": (base, checkouts.base_python or checkouts.python), **sides}
        if settings.calibrate:
            _measured("head", *sides["head"], ["selfcheck", *device], checkouts, out)
        for turn in range(settings.turns if base is not None else 1):
            for side in reversed(sides) if turn % 2 else sides:
                if base is not None and not settings.quiet:
                    typer.echo(f"turn {turn + 1} of {settings.turns}: {side}", err=True)
                words = ["run", scenario, *plan, *device, "--seed", str(turn)]
                code = _measured(side, *sides[side], words, checkouts, out)
                write_whole(out / f"{side}.code", f"{code}\n")


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP, unless ignored, end what runs and remove the worktree, as Ctrl-C does."""

    def end(number: int, _: FrameType | None) -> None:
        raise typer.Exit(128 + number)

    ours = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
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
        refuse_way_out(out)
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{out}: cannot be made ({error.strerror}); choose another with --output DIR"
        ) from None
    lock = writer_lock(out)
    try:
        if (out / "head").exists() or (out / "base").exists():
            raise BadInput(
                f"{out}: has runs already, which would count as turns; remove it, or choose another"
                " with --output DIR"
            )
        yield
    finally:
        lock.release()


def _measured(
    side: str, checkout: Path, python: str, words: list[str], checkouts: Checkouts, out: Path
) -> int:
    """By the checkout's code and backends. 1 is no failure of a side: a failed case has a row, and
    equals that selfcheck told apart are noise, which the comparison reads.
    """
    environment = dict(os.environ)
    if checkouts.code:
        paths = [str(checkout.resolve() / checkouts.code), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    if checkouts.backend_dir:
        environment["ATTNBENCH_BACKENDS"] = str(checkout.resolve() / checkouts.backend_dir)
    code = _attnbench(python, [*words, "--quiet", "--out", str(out / side)], environment)
    if code not in (0, 1):
        typer.echo(
            f"{checkout}: {side} could not be measured; see the message above (exit code {code})",
            err=True,
        )
        raise typer.Exit(code)
    return code


def _attnbench(python: str, words: list[str], environment: Mapping[str, str]) -> int:
    try:
        done = run_command(
            [python, *SAFE_PATH, "-m", "attnbench", *words], env=environment, show_errors=True
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
    remove = ("worktree", "remove", "--force", str(tree))
    _git(head, *remove)  # one that a killed gate left
    if _git(head, "worktree", "add", "--quiet", "--detach", str(tree), base) is None:
        raise EnvironmentUnmet(f"{tree}: git cannot make a worktree of {shown(base)} there")
    try:
        yield tree / below
    finally:
        _git(head, *remove)


def _git(folder: Path, *words: str) -> str | None:
    """What git prints; None if it fails, or is not installed."""
    if (git := shutil.which("git")) is None:
        return None
    done = run_command([git, "-C", str(folder), *words])
    return done.stdout.strip() if done.returncode == 0 else None


# ---- judge ---------------------------------------------------------------------------------------


def judge(settings: Settings, out: Path) -> int:
    """Compare, and write summary.md, compare.json, report.md and report.html into `out`.

    In a job of GitHub (GITHUB_STEP_SUMMARY, GITHUB_OUTPUT) summary and verdict go there, else the
    comparison goes to stdout. Returns the exit code. Raises BadInput.
    """
    from ...reports.comparison.gate import Gate
    from .margins import read_margins

    run = out / "head" / "latest"
    if not run.exists():
        raise BadInput(f"{out}: has no run of HEAD; measure first, without --step judge")
    gate = Gate(
        margins=read_margins(settings.margins), fail_on_undecided=settings.fail_on_undecided
    )
    found, verdict = None, "none"
    try:
        found = _compared(gate, settings.baseline, out, run)
    except Refusal as error:
        typer.echo(error, err=True)
        code = error.exit_code
    else:  # without anything to compare with, that of the run
        code = int((out / "head.code").read_text()) if found is None else 0
    if found is not None and found.gate_result is not None:
        code = EXIT_CODES[found.gate_result.outcome]
        verdict = VERDICTS[code]
    summary = _written(found, out, run)
    if in_job := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(in_job).open("a") as file:
            file.write(summary)
    else:
        if found is not None:
            print_comparison(found, Shape.TABLE)
        typer.echo(f"{out / 'summary.md'} {out / 'report.html'}")
    if in_output := os.environ.get("GITHUB_OUTPUT"):
        with Path(in_output).open("a") as file:
            file.write(f"code={code}\nverdict={verdict}\nreport={out / 'report.html'}\n")
    _annotate(verdict, settings.margins)
    return code


def _compared(gate: "Gate", baseline: str | None, out: Path, run: Path) -> "Comparison | None":
    """None if there is nothing to compare with. Raises Refusal."""
    from ...reports.comparison.compare import compare_interleaved

    if (out / "base").exists():
        sides = runs_in(str(out / "base")), runs_in(str(out / "head"))
        return compare_interleaved(*sides, gate)
    return against(baseline, run.resolve(), DEFAULT_ROOT, gate) if baseline else None


def _written(found: "Comparison | None", out: Path, run: Path) -> str:
    """Write the files; returns the summary."""
    from ...reports.comparison import text
    from ...reports.pages import html, markdown
    from ...reports.pages.report import open_report

    (out / "compare.json").unlink(missing_ok=True)
    if found is not None:
        write_whole(out / "compare.json", text.as_json(found))
    opened = open_report([run.resolve()])
    html.write_pages(opened, out / "report.html")
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
