"""`attnbench advise`: which attention for a model here, how long a context, at what cost."""

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..cli import completion, options
from ..cli.options import DEFAULT_ROOT, HOW, LIMITS, OUTPUT, SHAPE, Root, argument, option
from ..files.errors import BadInput, shown

if TYPE_CHECKING:
    from ...impls.problem import Dtype
    from ...reports.advise.answer import Advice
    from ...reports.advise.asked import Inquiry, Phase
    from ...reports.advise.stored import StoredRows
    from ..machine.this_device import ThisDevice
    from ..models.layers import Model

USUAL_CONTEXT = 8192  # tokens, if the model takes so many
MOST_TOKENS = 1 << 27
MOST_SECONDS = 1e8
GIB = 2**30
MEASURED_ELSEWHERE = ("--measure", "--json", "--quiet", "-q", "--wait", "--wait-idle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The model, and the shapes that are asked about."""

    config: Annotated[
        str,
        argument(
            "CONFIG",
            "A name from attnbench list models, or a config.json; that of Hugging Face, or its"
            " folder.",
            completion.models,
        ),
    ]
    context: Annotated[
        str | None,
        option(
            "--context SIZE,SIZE",
            "Tokens of context, as 8k,32k; 8k if not given, or what the model takes.",
            SHAPE,
        ),
    ] = None
    batch: Annotated[int, option("--batch COUNT", "Sequences.", SHAPE, min=1)] = 1
    dtype: Annotated[
        str | None,
        option(
            "--dtype NAME",
            "fp32, bf16 or fp16; that of the model's weights if not given.",
            SHAPE,
            completion.values_of("dtype"),
        ),
    ] = None
    phase: Annotated[
        str | None,
        option("--phase A,B", "Of prefill, decode, training; the first two if not given.", SHAPE),
    ] = None
    tp: Annotated[
        int,
        option(
            "--tp COUNT",
            "Devices that share the heads (tensor parallelism); bytes are those of one.",
            SHAPE,
            min=1,
        ),
    ] = 1
    memory_gib: Annotated[
        float | None,
        option(
            "--memory-gib G",
            "Memory for weights, keys, values and attention; in GiB, the device's if not given.",
            LIMITS,
        ),
    ] = None
    beside_weights: Annotated[
        bool, option("--beside-weights", "--memory-gib is without the weights.", LIMITS)
    ] = False
    max_seconds: Annotated[
        str | None,
        option(
            "--max-seconds SECONDS",
            "How long attention of all layers may take; at the longest context: 10, or for each"
            " phase: prefill=10,decode=0.05.",
            LIMITS,
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.memory_gib is not None and not 0 < self.memory_gib < 1 << 20:
            raise BadInput(f"--memory-gib {self.memory_gib:g}: wanted a number of GiB above 0")


def advise(
    asked: Asked,
    *,
    measure: Annotated[
        bool, option("--measure", "Measure what no earlier run here has measured; minutes.", HOW)
    ] = False,
    device: options.OwnWhere = None,
    threads: options.Threads = None,
    wait: options.Wait = False,
    wait_idle: options.WaitIdle = None,
    timeout: options.Timeout = None,
    out: Root = DEFAULT_ROOT,
    page: Annotated[Path | None, option("--output -o FILE", "Also write a page.", OUTPUT)] = None,
    quiet: options.Quiet = False,
    as_json: Annotated[bool, option("--json", "The answer as JSON.", OUTPUT)] = False,
) -> None:
    """Say which attention a model should use here, and what context fits. Also what it costs.

    Answers from the rows of earlier runs on this device, and says which are missing; --measure
    measures those.
    """
    from ...reports.advise import document
    from ...reports.advise.answer import advise as answer
    from ..cli.idle import wait_until_idle
    from ..machine.this_device import this_device

    here = this_device(device)
    inquiry = _inquiry(asked, here)
    if measure:
        limits = {"memory_gib": asked.memory_gib, "timeout_s": timeout}
        given = {name: value for name, value in limits.items() if value is not None}
        wait_until_idle(wait_idle, quiet=quiet or as_json)
        rows = _measured(inquiry, here, out, given, wait=wait, quiet=quiet)
    else:
        rows = _rows(inquiry, here, out)
    advice = answer(inquiry, rows)
    for note in rows.notes:
        typer.echo(f"note: {note}", err=True)
    if page is not None:
        _write(page, advice)
    if as_json:
        typer.echo(document.as_json(advice))
        return
    _print(advice)


def _print(advice: "Advice") -> None:
    from ...reports.advise.sentences import about, room, run_commands, use
    from ...reports.advise.tables import blocks
    from ..cli.tables import show
    from ..terminal.progress import say

    say(room(advice))
    say(use(advice))
    say(about(advice))
    typer.echo("")
    show(blocks(advice))
    if advice.is_doubtful:
        say("What measures these choices again, in several processes:")
        for command in run_commands(advice):
            say(f"  {command}")


def _write(path: Path, advice: "Advice") -> None:
    from ...reports.advise.page import render
    from ..cli.report import written_to
    from ..files.safe_files import write_output

    with written_to(path, "--output FILE"):
        if write_output(path, render(advice)):
            typer.echo(path, err=True)


# ---- the question --------------------------------------------------------------------------------


def _inquiry(asked: Asked, here: "ThisDevice") -> "Inquiry":
    """Raises BadInput."""
    from ...reports.advise.asked import Inquiry
    from ..models.resolve import model_of
    from .shapes import ModelShapes, implementations, weights_of

    model = model_of(asked.config).divided(asked.tp)
    phases, (dtype, guess) = _phases(asked.phase, model), _dtype(asked.dtype, model)
    memory_gib = asked.memory_gib
    weights, stored, words = weights_of(model, dtype, given=asked.dtype is not None)
    return Inquiry(
        config=asked.config,
        arguments=_of_the_question(sys.argv[2:]),
        model=model.name,
        model_type=model.model_type,
        device=here.kind,
        device_name=here.name,
        dtype=dtype,
        batch=asked.batch,
        tp=asked.tp,
        phases=phases,
        contexts=_contexts(asked.context, model),
        most_context=model.max_context,
        weight_bytes=None if weights is None or asked.beside_weights else weights // asked.tp,
        weights_in=f"{stored}, which is a guess" if guess and stored == f"in {dtype}" else stored,
        weights_words=words,
        beside_weights=asked.beside_weights,
        dtype_guess=guess,
        memory_bytes=here.memory_bytes if memory_gib is None else int(memory_gib * GIB),
        memory_from=here.memory_from if memory_gib is None else f"{memory_gib:g} GiB, as given",
        implementations=implementations(),
        max_seconds=_max_seconds(asked.max_seconds, phases),
        others=model.others(),
        shapes=ModelShapes(model=model, batch=asked.batch, dtype=dtype, device=here.kind),
    )


def _of_the_question(arguments: Sequence[str]) -> list[str]:
    """Without those that only say how it is measured or told."""
    return [
        one
        for one, before in zip(arguments, ["", *arguments], strict=False)
        if one.partition("=")[0] not in MEASURED_ELSEWHERE and before != "--wait-idle"
    ]


def _contexts(text: str | None, model: "Model") -> list[int]:
    """Shortest first. Raises BadInput, also beyond what the model takes."""
    fixed = {layer.seq_len for layer, _ in model.attention()}
    if text is None:
        if fixed and 0 not in fixed:
            return [max(fixed)]
        return [min(USUAL_CONTEXT, model.max_context or USUAL_CONTEXT)]
    found = sorted({_tokens(part.strip()) for part in text.split(",")})
    if model.max_context is not None and found[-1] > model.max_context:
        raise BadInput(
            f"--context {found[-1]}: {model.name} takes at most {model.max_context} tokens; wanted"
            " no more"
        )
    return found


def _tokens(text: str) -> int:
    """8192 or 8k, as scenarios write sizes."""
    if match := re.fullmatch(r"([0-9]{1,12})([kKmM]?)", text):
        tokens = int(match[1]) * {"": 1, "k": 1024, "m": 1024**2}[match[2].lower()]
        if 1 <= tokens <= MOST_TOKENS:
            return tokens
    raise BadInput(
        f"--context {shown(text)}: wanted a number of tokens from 1 to {MOST_TOKENS}, as 8192 or 8k"
    )


def _dtype(text: str | None, model: "Model") -> "tuple[Dtype, str]":
    """The weights' own, unless another is given; fp32 where theirs is none of ours, and why."""
    from ...impls.problem import ITEM_BYTES
    from ..cases.case import VALUE_ALIASES
    from ..models.layers import DTYPES

    if text is None:
        if known := DTYPES.get(model.dtype or ""):
            return known, ""
        found = (
            f"config.json has dtype {model.dtype}" if model.dtype else "config.json has no dtype"
        )
        return "fp32", f"{found}; --dtype says which it is"
    name = VALUE_ALIASES.get("dtype", {}).get(text, text)
    for one in ITEM_BYTES:
        if name == one:
            return one, ""
    raise BadInput(f"--dtype {text!r}: wanted one of {', '.join(ITEM_BYTES)}")


def _phases(text: str | None, model: "Model") -> "list[Phase]":
    """Raises BadInput for a phase in which the model has no attention."""
    from ..models.layers import PHASES

    stacks = {layer.stack for layer, _ in model.attention()}
    decodes = bool(stacks - {"encoder"})
    if text is None:
        return ["prefill", "decode"] if decodes else ["prefill"]
    names = [part.strip() for part in text.split(",")]
    found: list[Phase] = [phase for phase in PHASES if phase in names]
    if wrong := [name for name in names if name not in PHASES]:
        raise BadInput(f"--phase {wrong[0]!r}: wanted one of {', '.join(PHASES)}")
    if "decode" in found and not decodes:
        raise BadInput(f"--phase decode: {model.name} has no decoder; wanted prefill or training")
    return found


def _max_seconds(text: str | None, phases: "list[Phase]") -> "dict[Phase, float]":
    """One number for all phases, or one for each that is named."""
    if text is None:
        return {}
    if "=" not in text:
        return dict.fromkeys(phases, _seconds(text, text))
    found: dict[Phase, float] = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        asked = next((phase for phase in phases if phase == name.strip()), None)
        if asked is None:
            raise BadInput(
                f"--max-seconds {shown(text)}: {shown(name.strip())} is not asked for; wanted"
                f" {' or '.join(phases)}, as {phases[0]}=10"
            )
        found[asked] = _seconds(number, text)
    return found


def _seconds(number: str, text: str) -> float:
    """Above 0, and below three years. Raises BadInput."""
    with suppress(ValueError):
        if 0 < (seconds := float(number)) < MOST_SECONDS:
            return seconds
    raise BadInput(
        f"--max-seconds {shown(text)}: wanted a number of seconds above 0, as 10 or 0.05"
    )


# ---- rows ----------------------------------------------------------------------------------------


def _rows(inquiry: "Inquiry", here: "ThisDevice", out: Path) -> "StoredRows":
    """Of all runs in the results folder, newest first; those of suites too."""
    from ...reports.advise.stored import Device, stored_rows
    from ..store.run_store import runs, runs_and_suites

    folders = [run for folder in runs_and_suites(out) for run in (runs(folder) or [folder])]
    problems = [
        one.problem
        for phase in inquiry.phases
        for context in inquiry.contexts
        for one in inquiry.shapes.asked(phase, context)
        if one.problem is not None
    ]
    device = Device(kind=here.kind, facts=here.facts)
    return stored_rows(reversed(folders), device, problems, inquiry.implementations)


def _measured(
    inquiry: "Inquiry",
    here: "ThisDevice",
    out: Path,
    limits: dict[str, float],
    *,
    wait: bool,
    quiet: bool,
) -> "StoredRows":
    """The rows after measuring what is missing, and again where the choice is close.

    The device is locked from the first look at it to the last row: no other run gets in between.
    """
    from ...reports.advise.answer import advise as answer
    from ..process.device_lock import device_lock
    from ..run.start import RunOptions
    from ..terminal.progress import kept, progress, say
    from . import measure as advise_measure

    device = here.facts.get("device_uuid") or here.kind

    def run(problems: advise_measure.Wanted, plan: str) -> None:
        listener = progress(quiet=quiet)
        options = RunOptions(
            command=["attnbench", *sys.argv[1:]], listener=listener, wait=wait, held_device=device
        )
        listener.start("starting a worker")
        try:
            result = advise_measure.run_wanted(inquiry, problems, plan, limits, out, options)
        finally:
            listener.end()
        if result.signal is not None:
            if not quiet:
                how = "Go on: the same command; without --measure it answers from what is kept."
                say(f"{kept(result.statuses)} {how}", stderr=True)
            raise typer.Exit(result.exit_code)

    with device_lock(device, wait=wait, check=lambda: None):
        rows = _rows(inquiry, here, out)  # only now: the run that was waited for may have some
        pace = advise_measure.predicted_call_s(inquiry.device, inquiry.dtype)
        if problems := advise_measure.wanted(inquiry, rows, pace):
            run(problems, "quick")
            rows = _rows(inquiry, here, out)
        if problems := advise_measure.close(answer(inquiry, rows)):
            takes_s = advise_measure.standard_takes_s(inquiry, problems, limits)
            if takes_s <= advise_measure.LONGEST_STANDARD_S:
                run(problems, "standard")
                rows = _rows(inquiry, here, out)
            elif not quiet:
                say(
                    f"The choice is close; a standard run would take about {takes_s / 60:.0f} min:"
                    " the commands are at the end.",
                    stderr=True,
                )
    return rows
