"""`attnbench gate BASE HEAD`: measure two checkouts in turns on this machine, then compare them.

The action in .github/ and `make gate` call this verb; docs/ci.md has recipes.
"""

import json
import os
import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from ..files.errors import BadInput, Refusal, Spelling
from ..files.safe_files import write_whole
from .compare import EXIT_CODES, CompareRequest, compared, print_comparison, rendered
from .fields import DEFAULT_ROOT
from .request import Verb
from .turns import GateRequest, measure

if TYPE_CHECKING:
    from ...reports.comparison.compare import Comparison

VERDICTS = {"passed": "passed", "failed": "failed", "nothing decided": "undecided"}
SAID = {
    "failed": ("error", "slower, or more memory, by more than {}"),
    "undecided": ("warning", "nothing decided about {}"),
}
"""For whoever reads no summary; in a job of GitHub an annotation."""
SUMMARY_BYTES = 1_000_000  # GitHub discards a summary of more than 1024 KiB


class Judged(NamedTuple):
    """`verdict`: passed, failed, undecided, or none if nothing was compared: `refusal` says why,
    or nothing was asked for. `exit_code`: as `attnbench gate` ends.
    """

    verdict: str
    exit_code: int
    comparison: "Comparison | None"
    refusal: Refusal | None


def tell(request: GateRequest) -> int:
    """Measure two checkouts in turns: did the code become slower?

    Measures base, head, head, base, ..., then judges HEAD's time and memory. Exit code 0: passed;
    3: a case is worse; 6: nothing is decided; 1: a case failed and nothing was compared.
    """
    out = request.output or _new_folder()
    if request.step != "judge":
        measure(request, out)
    if request.step == "measure":
        return 0
    found = judge(request, out)
    _say(found, out)
    on_github = bool(os.environ.get("GITHUB_ACTIONS"))
    margins = " ".join(request.gate.split())  # a line of its own could be a command of the job
    if found.verdict in SAID:
        kind, sentence = SAID[found.verdict]
        annotation = f"::{kind} title=attnbench::" if on_github else ""
        sys.stderr.write(f"{annotation}{sentence.format(margins)}; see the summary\n")
    return found.exit_code


def gate(request: GateRequest) -> dict[str, Any]:
    """Measure two checkouts in turns: did the code become slower?

    Returns `verdict` (passed, failed, undecided, none), `reason` for none, the folder `output`, and
    `compare`, what `attnbench compare --format json` prints, or None. Raises Refusal.
    """
    out = request.output or _new_folder()
    measure(request, out)
    found = judge(request, out)
    return {
        "verdict": found.verdict,
        "reason": found.refusal.spelled(Spelling.PYTHON) if found.refusal else "",
        "output": str(out),
        "compare": json.loads(rendered(found.comparison, "json")) if found.comparison else None,
    }


def _new_folder() -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return DEFAULT_ROOT / f"gate-{stamp}-{secrets.token_hex(4)}"  # no two starts share one


# ---- judge ---------------------------------------------------------------------------------------


def judge(request: GateRequest, out: Path) -> Judged:
    """Compare, and write summary.md, compare.json, report.md and report.html into `out`. Raises
    BadInput.
    """
    run = out / "head" / "latest"
    if not run.exists():
        raise BadInput(f"{out}: has no run of HEAD; measure first, without --step judge")
    turns = (out / "base").exists()
    found = refusal = None
    verdict, code = "none", None
    if turns or request.baseline:
        base, new = (out / "base", out / "head") if turns else (request.baseline, run.resolve())
        same = {name: getattr(request, name) for name in ("margin", "gate", "fail_on_undecided")}
        try:
            found = compared(CompareRequest(base=str(base), new=str(new), turns=turns, **same))
            assert found.gate_result is not None
            outcome = found.gate_result.outcome
            verdict, code = VERDICTS[outcome], EXIT_CODES[outcome]
        except Refusal as error:
            refusal, code = error, error.exit_code
    if code is None:  # without anything to compare with, that of the run
        code = int((out / "head.code").read_text())
    _write(found, out, run)
    return Judged(verdict, code, found, refusal)


def _write(found: "Comparison | None", out: Path, run: Path) -> None:
    from ...reports.pages import html, markdown
    from ...reports.pages.report import open_report

    (out / "compare.json").unlink(missing_ok=True)
    if found is not None:
        write_whole(out / "compare.json", rendered(found, "json"))
    opened = open_report([run.resolve()])
    html.write_page(opened, out / "report.html")
    page = markdown.render(opened)
    write_whole(out / "report.md", page)
    summary = rendered(found, "md") if found is not None else ""
    most = int(os.environ.get("MOST_BYTES", SUMMARY_BYTES))
    if len(f"{summary}{page}".encode()) > most:
        page = "The report is too long for a summary; the page has it.\n"
    summary += f"\n{page}"
    write_whole(out / "summary.md", summary)


# ---- tell ----------------------------------------------------------------------------------------


def _say(found: Judged, out: Path) -> None:
    """In a job of GitHub (GITHUB_STEP_SUMMARY, GITHUB_OUTPUT) summary and verdict go there, else
    the comparison goes to stdout.
    """
    page = out / "report.html"
    if found.refusal:
        typer.echo(found.refusal, err=True)
    if in_job := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(in_job).open("a") as file:
            file.write((out / "summary.md").read_text())
    else:
        if found.comparison is not None:
            print_comparison(found.comparison)
        typer.echo(f"{out / 'summary.md'} {page}")
    if in_output := os.environ.get("GITHUB_OUTPUT"):
        with Path(in_output).open("a") as file:
            file.write(f"code={found.exit_code}\nverdict={found.verdict}\nreport={page}\n")


VERBS = {
    "gate": Verb(
        tell=tell,
        answer=gate,
        examples=(
            "attnbench gate ../base . --scenario bench.yaml --backend-dir attention",
            "attnbench gate main . --scenario quickstart --turns 7 --gate 'latency: 3%'",
        ),
        usual="scenario backend_dir code turns plan device gate fail_on_undecided baseline"
        " base_python output",
    )
}
