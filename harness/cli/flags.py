"""The options that several verbs share, with their help."""

import inspect
import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from ..cases.axes import AXES, VALUE_ALIASES
from ..files.errors import BadInput
from . import completion

DEFAULT_ROOT = Path("results")
# groups of options in --help
WHAT, SHAPE, HOW, LIMITS, EARLIER, OUTPUT = (
    "What to measure",
    "Shape of the problem",
    "How to measure",
    "Limits",
    "An earlier run",
    "Output",
)
FILES = (".csv", ".htm", ".html", ".json", ".md", ".parquet", ".pdf", ".png", ".svg", ".txt")
MOST_THREADS = 4096
MOST_COPIES = 64


class Device(StrEnum):
    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


def device_named(text: str | Device) -> Device:
    """gpu is cuda."""
    name = VALUE_ALIASES["device"].get(text, text)
    if name not in [*Device]:
        raise typer.BadParameter(f"{text!r} is not one of auto, cpu, cuda (or gpu)")
    return Device(name)


def results_folder(path: Path) -> Path:
    """Refuses a file."""
    if path.is_file() or (path.suffix.lower() in FILES and not path.is_dir()):
        raise BadInput(
            f"--out {path}: a file; wanted the folder that holds the runs, {DEFAULT_ROOT} if not"
            " given; a page or an export is named with -o FILE"
        )
    return path


def set_threads(count: int | None) -> int | None:
    """For this process and all workers, before torch starts: it reads the variable once."""
    if count is not None:
        os.environ["OMP_NUM_THREADS"] = str(count)
    return count


Root = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder that holds the run folders.",
        callback=results_folder,
        is_eager=True,
        rich_help_panel=OUTPUT,
    ),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help=(
            "Folder of a run or a suite, or its name under --out; 'latest' finished last, a"
            " scenario's name is its newest run."
        ),
        autocompletion=completion.runs,
    ),
]
Imported = Annotated[
    list[str] | None,
    typer.Option(
        "--backend",
        metavar="MODULE:ATTRIBUTE",
        help="Also this callable or module of yours; needs --allow-import. Repeatable.",
        rich_help_panel=WHAT,
    ),
]
AllowImport = Annotated[
    bool,
    typer.Option(
        "--allow-import",
        help="Let workers import and run the modules that --backend names.",
        rich_help_panel=WHAT,
    ),
]
Salvage = Annotated[
    bool,
    typer.Option("--salvage", help="Leave out rows that cannot be read, and say which on stderr."),
]
Backends = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Backends, as naive,fused,sdpa.",
        autocompletion=completion.backends,
        rich_help_panel=WHAT,
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="BACKEND",
        help="Backend that ratios are taken against; the first if not given.",
        autocompletion=completion.one_backend,
        rich_help_panel=WHAT,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="Measure only cases whose id matches; repeatable.",
        rich_help_panel=WHAT,
    ),
]
Skip = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="Leave out cases whose id matches; repeatable.",
        rich_help_panel=WHAT,
    ),
]
OwnWhere = Annotated[
    Device | None,
    typer.Option(
        metavar="auto|cpu|cuda",
        help="Where to measure; auto, the default, takes a GPU if there is one.",
        parser=device_named,
        autocompletion=completion.devices,
        rich_help_panel=HOW,
    ),
]
"""Of a command that measures no scenario."""
Where = Annotated[
    Device | None,
    typer.Option(
        metavar="auto|cpu|cuda",
        help="Where to measure; auto takes a GPU if there is one. A scenario's own if not given.",
        parser=device_named,
        autocompletion=completion.devices,
        rich_help_panel=HOW,
    ),
]
PickedDevice = Annotated[
    Device,
    typer.Option(
        metavar="auto|cpu|cuda",
        help="Where; auto takes a GPU if there is one.",
        parser=device_named,
        autocompletion=completion.devices,
        rich_help_panel=HOW,
    ),
]
PlanName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="quick, standard or rigorous; a scenario's own if not given, else standard.",
        autocompletion=completion.plans,
        rich_help_panel=HOW,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="COUNT",
        min=1,
        max=MOST_THREADS,
        help="Threads of torch on a CPU (OMP_NUM_THREADS); one per core if not given.",
        callback=set_threads,
        rich_help_panel=HOW,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="Time limit of one step of a case, or of one trial of a wall; 60 if not given.",
        rich_help_panel=LIMITS,
    ),
]
MemoryGib = Annotated[
    float | None,
    typer.Option(
        metavar="G",
        help="Budget for inputs and peak together, in GiB; a safe share if not given.",
        rich_help_panel=LIMITS,
    ),
]
HeadDim = Annotated[
    str | None,
    typer.Option(
        metavar="WIDTH",
        help="Width of one head; d_model / heads if not given. Without --d-model: d_model is"
        " heads times this.",
        rich_help_panel=SHAPE,
    ),
]
OfModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="The attention of a model: a name from attnbench list models, a config.json of"
        " Hugging Face, or its folder. In place of heads and widths.",
        autocompletion=completion.models,
        rich_help_panel=SHAPE,
    ),
]
OfPhase = Annotated[
    str | None,
    typer.Option(
        "--phase",
        metavar="prefill|decode|training",
        help="With --model: --seq-len tokens at once, one token after so many, or all with"
        " gradients.",
        rich_help_panel=SHAPE,
    ),
]
Tp = Annotated[
    int | None,
    typer.Option(
        "--tp",
        metavar="COUNT",
        min=1,
        help="With --model: devices that share its heads (tensor parallelism).",
        rich_help_panel=SHAPE,
    ),
]
Pythons = Annotated[
    list[str] | None,
    typer.Option(
        "--python",
        metavar="NAME=PATH",
        help="Measure in this interpreter; two or more are interleaved and compared.",
        rich_help_panel=HOW,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="A.B=C",
        help="Change a field of the scenario; repeatable.",
        rich_help_panel=WHAT,
    ),
]
Wait = Annotated[
    bool,
    typer.Option("--wait", help="Wait for another run on this device to end.", rich_help_panel=HOW),
]
InShard = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Measure only the I-th of N parts of the plan, for N devices or jobs; attnbench merge"
        " makes one run of them.",
        rich_help_panel=WHAT,
    ),
]
Replicate = Annotated[
    int | None,
    typer.Option(
        "--replicate",
        metavar="COUNT",
        min=2,
        max=MOST_COPIES,
        help="Measure every group of cases so many times, to see how much devices of one kind"
        " differ: with --shard or --on ray on different ones, else on this one.",
        rich_help_panel=WHAT,
    ),
]
Seed = Annotated[
    int,
    typer.Option(help="Of the inputs and of the order of measuring.", rich_help_panel=HOW),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="No progress and no summary.", rich_help_panel=OUTPUT),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Progress as JSON lines on stdout.", rich_help_panel=OUTPUT),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        "-n",
        help="Show every case with its predicted bytes; measure nothing.",
        rich_help_panel=OUTPUT,
    ),
]


def grouped(**groups: Mapping[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator: several options take the place of one parameter of the command, which receives
    the values that were given, by name.

    `groups`: by parameter, the options as annotated types; a bool is False if it is not given,
    another one None.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_options(**values: Any) -> None:
            for group, options in groups.items():
                some = {name: values.pop(name) for name in options}
                given = {name: one for name, one in some.items() if one not in (None, False)}
                values[group] = given
            command(**values)

        signature = inspect.signature(command)
        parameters = list(signature.parameters.values())
        for group, options in groups.items():
            place = [one.name for one in parameters].index(group)
            parameters[place : place + 1] = [_parameter(*one) for one in options.items()]
        with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_options

    return decorate


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    default = False if get_args(annotation)[0] is bool else None
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def axes(*without: str) -> dict[str, Any]:
    """An option for each axis of a problem that has one."""
    return {name: _axis(name) for name, axis in AXES.items() if axis.option and name not in without}


def _axis(name: str) -> Any:
    axis = AXES[name]
    if axis.type is bool:
        option = typer.Option(
            f"--{name.replace('_', '-')}", help=axis.option, rich_help_panel=SHAPE
        )
        return Annotated[bool, option]
    option = typer.Option(
        metavar="SIZE,SIZE" if axis.type is int else "A,B",
        help=axis.option,
        autocompletion=completion.values_of(name),
        rich_help_panel=SHAPE,
    )
    return Annotated[str | None, option]
