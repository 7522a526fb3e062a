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
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from ..files.errors import BadInput, EnvironmentUnmet, Refusal, shown
from ..process.interpreter import SAFE_PATH
from .options import DEFAULT_ROOT

if TYPE_CHECKING:
    from ...reports.comparison.compare import Comparison
    from ...reports.comparison.gate import Gate
    from .gate import Checkouts, Settings

VERDICTS = {0: "passed", 3: "failed", 6: "undecided"}
ENDING = signal.SIGTERM, signal.SIGHUP
SUMMARY_BYTES = 1_000_000  # GitHub discards a summary of more than 1024 KiB


def new_folder() -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return DEFAULT_ROOT / f"gate-{stamp}-{secrets.token_hex(4)}"  # two starts never share one


# ---- measure -------------------------------------------------------------------------------------


def measure(scenario: str, checkouts: "Checkouts", settings: "Settings", out: Path) -> None:
    """Into out/head and out/base: base, head, head, base, base, head, ...

    A turn is one run of each, directly after each other, so that slow drift of the machine affects
    both equally. Raises BadInput, and typer.Exit where a side could not be measured.
    """
    if not checkouts.head.is_dir():
        raise BadInput(f"{checkouts.head}: no such folder; wanted the checkout that is judged")
    _refuse_used(out)
    given = {"--device": settings.device, "--plan": settings.plan}
    device, plan = ([name, value] if value else [] for name, value in given.items())
    with _ended_by_signals(), base_folder(checkouts, out) as base, _only_writer(out):
        sides = {"head": (checkouts.head, checkouts.python)}
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
                (out / f"{side}.code").write_text(f"{code}\n")


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


def _measured(
    side: str, checkout: Path, python: str, words: list[str], checkouts: "Checkouts", out: Path
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
def base_folder(checkouts: "Checkouts", out: Path) -> Iterator[Path | None]:
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


def judge(settings: "Settings", out: Path) -> int:
    """Compare, and write summary.md, compare.json, report.md and report.html into `out`.

    In a job of GitHub (GITHUB_STEP_SUMMARY, GITHUB_OUTPUT) summary and verdict go there, else the
    comparison goes to stdout. Returns the exit code. Raises BadInput.
    """
    from ...reports.comparison.gate import Gate
    from .compare import EXIT_CODES, Shape, print_comparison
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
        _append(in_job, summary)
    else:
        if found is not None:
            print_comparison(found, Shape.TABLE)
        typer.echo(f"{out / 'summary.md'} {out / 'report.html'}")
    if in_output := os.environ.get("GITHUB_OUTPUT"):
        _append(in_output, f"code={code}\nverdict={verdict}\nreport={out / 'report.html'}\n")
    _annotate(verdict, settings.margins)
    return code


def _append(path: str, text: str) -> None:
    with Path(path).open("a") as file:
        file.write(text)


def _compared(gate: "Gate", baseline: str | None, out: Path, run: Path) -> "Comparison | None":
    """None if there is nothing to compare with. Raises Refusal."""
    from ...reports.comparison.compare import compare_interleaved, compare_runs
    from ..store.names import find_run
    from .compare import runs_in

    if (out / "base").exists():
        sides = runs_in(str(out / "base")), runs_in(str(out / "head"))
        return compare_interleaved(*sides, gate)
    if baseline:
        return compare_runs(find_run(baseline, DEFAULT_ROOT), run, gate)
    return None


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
