"""`attnbench advise`: which attention for a model here, how long a context, at what cost."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..verbs import fields
from ..verbs.measuring import How, ended, torch_threads_kept
from ..verbs.request import Option, Verb, words
from .ask import Ended, Measuring, answered, measured
from .question import Question, inquiry_of

if TYPE_CHECKING:
    from ...reports.advise.answer import Advice

NO_ANSWER = 3  # exit code
MEASURED_ELSEWHERE = ("measure", "json", "quiet", "wait", "wait_idle")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviseRequest(Question):
    measure: Annotated[bool, Option(group=fields.HOW)] = False
    """Measure what no earlier run here has measured (takes minutes)."""
    device: fields.AutoDevice = None
    threads: fields.Threads = None
    wait: fields.Wait = False
    wait_idle: fields.WaitIdle = None
    timeout: fields.Timeout = None
    runs: fields.Runs = fields.DEFAULT_ROOT
    output: Annotated[Path | None, Option("FILE", fields.OUTPUT, short="-o")] = None
    """Also write a page to FILE."""
    quiet: fields.Quiet = False
    json: fields.AsJson = False


def answer(request: AdviseRequest, how: How, say: Callable[[str], object]) -> "Advice":
    """`say`: told what is not measured, and why. Writes the page that was asked for. Raises
    Refusal, and Ended by a signal.
    """
    from ...reports.advise.answer import advise
    from ..devices.this_device import this_device

    here = this_device(request.device)
    inquiry = inquiry_of(request, here, words(request, but=MEASURED_ELSEWHERE))
    if request.measure:
        how.wait_until_idle()
        limits = {"memory_gib": request.memory_gib, "timeout_s": request.timeout}
        measuring = Measuring(
            options=how.started,
            wait=request.wait,
            limits={name: value for name, value in limits.items() if value is not None},
            say=say,
        )
        rows = measured(inquiry, here, request.runs, measuring)
    else:
        inquiry, rows = answered(inquiry, here, request.runs)
    found = advise(inquiry, rows)
    if request.output is not None:
        _write_page(request.output, found)
    return found


def _write_page(path: Path, advice: "Advice") -> None:
    from ...reports.advise.page import render
    from ..files.errors import option, unless_refused
    from ..files.safe_files import write_output

    with unless_refused(path, f"choose another place with {option('output', 'FILE')}"):
        if write_output(path, render(advice)):
            typer.echo(path, err=True)


def tell(request: AdviseRequest) -> int:
    """Recommend an attention for a model, and the context that fits.

    Also says what it costs. Answers from earlier runs on this device and names missing
    measurements; --measure takes them. Exit code 3: attnbench cannot measure the model's attention,
    or its configuration has an unknown field that may change attention.
    """
    from ..terminal.progress import kept, say

    how = How(request=request)
    try:
        found = answer(
            request, how, lambda sentence: None if request.quiet else say(sentence, stderr=True)
        )
    except Ended as stopped:
        if not request.quiet:
            go_on = (
                "Continue with the same command; without --measure it answers from the kept rows."
            )
            say(f"{kept(stopped.result.statuses)} {go_on}", stderr=True)
        return stopped.result.exit_code
    for note in found.rows.notes:
        typer.echo(f"note: {note}", err=True)
    if request.json:
        from ...reports.advise.tables import document

        whole = document(found)
        typer.echo(json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _print(found)
    return NO_ANSWER if not found.can_be_measured or found.inquiry.cautions else 0


def _print(advice: "Advice") -> None:
    from ...reports.advise.tables import blocks
    from ...reports.advise.words import about, room, run_commands, use
    from ..terminal.progress import say
    from ..verbs.tables import show

    say(room(advice))
    say(use(advice))
    say(about(advice))
    typer.echo("")
    show(blocks(advice))
    if advice.is_doubtful:
        say("To measure these choices again, in several processes:")
        for command in run_commands(advice):
            say(f"  {command}")


def advise(request: AdviseRequest) -> dict[str, Any]:
    """Which attention a model should use here, and what context fits, from the rows of earlier
    runs. Raises Refusal; KeyboardInterrupt once the rows are safe.
    """
    from ...reports.advise.tables import document

    how = How.python(request, "attnbench.advise()")
    try:
        with torch_threads_kept() if request.measure else nullcontext():
            return document(answer(request, how, lambda sentence: None))
    except Ended as stopped:
        ended(stopped.result, how)
        raise


VERBS = {
    "advise": Verb(
        tell=tell,
        answer=advise,
        examples=(
            "attnbench advise llama-3-8b --context 8k --memory-gib 24",
            "attnbench advise ./my-model --context 32k,128k --measure -o advice.html",
        ),
        usual="context batch dtype phase memory_gib measure device output json runs",
    )
}
