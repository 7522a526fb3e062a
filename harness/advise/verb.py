"""`attnbench advise`: which attention for a model here, how long a context, at what cost."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..cli import options
from ..cli.options import (
    DEFAULT_ROOT,
    HOW,
    LIMITS,
    OUTPUT,
    SHAPE,
    Root,
    argument,
    own,
    own_option,
    switch,
)
from ..verbs import completion
from .ask import Ended, Measuring, answered, given_limits, measured
from .question import Question, inquiry_of

if TYPE_CHECKING:
    from ...reports.advise.answer import Advice
    from ..run.engine import RunOptions

NO_ANSWER = 3  # exit code
MEASURED_ELSEWHERE = ("--measure", "--json", "--policy", "--quiet", "-q", "--wait", "--wait-idle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Question):
    """As options."""

    config: str = own(
        argument(
            "CONFIG",
            "A name from attnbench list models, or a config.json; that of Hugging Face, or its"
            " folder.",
            completion.models,
        ),
        MISSING,
    )
    context: str | None = own_option(
        "--context SIZE,SIZE",
        "Tokens of context, as 8k,32k; 8k if not given, or what the model takes.",
        SHAPE,
    )
    batch: int = own_option("--batch COUNT", "Sequences.", SHAPE, min=1, default=1)
    dtype: str | None = own_option(
        "--dtype NAME",
        "fp32, bf16 or fp16; that of the model's weights if not given.",
        SHAPE,
        completion.values_of("dtype"),
    )
    kv_dtype: str | None = own_option(
        "--kv-dtype fp8|q8|q4", "Keys and values are kept so, for their bytes.", SHAPE
    )
    phase: str | None = own_option(
        "--phase A,B",
        "Of prefill, chunk, decode, verify, training; prefill and decode if not given.",
        SHAPE,
    )
    chunk: int | None = own_option(
        "--chunk COUNT", "Tokens of a prompt that phase chunk computes; 512.", SHAPE, min=1
    )
    draft: int | None = own_option(
        "--draft COUNT", "Drafted tokens that phase verify computes; 4.", SHAPE, min=1
    )
    tp: int = own_option(
        "--tp COUNT",
        "Devices that share the heads (tensor parallelism); bytes are those of one.",
        SHAPE,
        min=1,
        default=1,
    )
    memory_gib: float | None = own_option(
        "--memory-gib G",
        "Memory for weights, keys, values and attention; in GiB, the device's if not given.",
        LIMITS,
    )
    beside_weights: bool = switch(
        "--beside-weights", "--memory-gib is without the weights.", LIMITS
    )
    max_seconds: str | None = own_option(
        "--max-seconds SECONDS",
        "How long attention of all layers may take; at the longest context: 10, or for each"
        " phase: prefill=10,decode=0.05.",
        LIMITS,
    )


def advise(
    asked: Asked,
    *,
    measure: bool = switch(
        "--measure", "Measure what no earlier run here has measured; minutes.", HOW
    ),
    device: options.OwnWhere = None,
    threads: options.Threads = None,
    wait: options.Wait = False,
    wait_idle: options.WaitIdle = None,
    timeout: options.Timeout = None,
    out: Root = DEFAULT_ROOT,
    page: Path | None = own_option("--output -o FILE", "Also write a page.", OUTPUT),
    policy: Path | None = own_option(
        "--policy FILE",
        "Also write which to take in which phase over which lengths: .json, or .py for"
        " transformers.",
        OUTPUT,
    ),
    quiet: options.Quiet = False,
    as_json: bool = switch("--json", "The answer as JSON.", OUTPUT),
) -> None:
    """Say which attention a model should use here, and what context fits. Also what it costs.

    Answers from the rows of earlier runs on this device, and says which are missing; --measure
    measures those. Exit code 3: the model has no attention that attnbench can measure, or its
    configuration has a field that may change attention and is not known.
    """
    from ...reports.advise.answer import advise as answer
    from ...reports.advise.document import document
    from ...reports.advise.policy import policy as decided
    from ..devices.this_device import this_device
    from ..files.errors import BadInput, shown
    from ..terminal.idle import wait_until_idle
    from ..terminal.progress import kept, say

    if policy is not None and policy.suffix not in (".json", ".py"):
        raise BadInput(f"--policy {shown(str(policy))}: wanted a file .json or .py")
    here = this_device(device)
    inquiry = inquiry_of(asked, here, _of_the_question(sys.argv[2:]))
    if measure:
        wait_until_idle(wait_idle, quiet=quiet or as_json)
        measuring = Measuring(
            options=lambda: _options(wait=wait, quiet=quiet),
            wait=wait,
            limits=given_limits(asked.memory_gib, timeout),
            close=lambda sentence: None if quiet else say(sentence, stderr=True),
        )
        try:
            rows = measured(inquiry, here, out, measuring)
        except Ended as stopped:
            if not quiet:
                how = "Go on: the same command; without --measure it answers from what is kept."
                say(f"{kept(stopped.result.statuses)} {how}", stderr=True)
            raise typer.Exit(stopped.result.exit_code) from None
    else:
        inquiry, rows = answered(inquiry, here, out)
    advice = answer(inquiry, rows)
    for note in rows.notes:
        typer.echo(f"note: {note}", err=True)
    if page is not None:
        from ...reports.advise.page import render

        _write(page, render(advice), "--output FILE")
    if policy is not None:
        found = decided(advice)
        lines = [json.dumps(found, indent=2)] if policy.suffix == ".json" else found["python"]
        _write(policy, "\n".join((*lines, "")), "--policy FILE")
    if as_json:
        whole = document(advice)
        typer.echo(json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _print(advice)
    if not advice.can_be_measured or inquiry.cautions:
        raise typer.Exit(NO_ANSWER)


def _print(advice: "Advice") -> None:
    from ...reports.advise.sentences import about, room, run_commands, use
    from ...reports.advise.tables import blocks
    from ..terminal.progress import say
    from ..verbs.tables import show

    say(room(advice))
    say(use(advice))
    say(about(advice))
    typer.echo("")
    show(blocks(advice))
    if advice.is_doubtful:
        say("What measures these choices again, in several processes:")
        for command in run_commands(advice):
            say(f"  {command}")


def _write(path: Path, text: str, given: str) -> None:
    from ..files.safe_files import write_output
    from ..verbs.show import written_to

    with written_to(path, given):
        if write_output(path, text):
            typer.echo(path, err=True)


@contextmanager
def _options(*, wait: bool, quiet: bool) -> "Iterator[RunOptions]":
    """Of the command that was given, with its progress."""
    from ..cli.measuring import run_options
    from ..terminal.progress import progress, started

    listener = progress(quiet=quiet)
    with started(listener):
        yield run_options(listener, wait=wait)


def _of_the_question(arguments: Sequence[str]) -> list[str]:
    """Without those that only say how it is measured or told."""
    return [
        one
        for one, before in zip(arguments, ["", *arguments], strict=False)
        if one.partition("=")[0] not in MEASURED_ELSEWHERE
        and before not in ("--wait-idle", "--policy")
    ]
