"""The options of the command line, each declared once, and groups of them as one parameter."""

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from ...impls.problem import AXES
from ..cases.case import VALUE_ALIASES
from ..files.errors import BadInput
from ..verbs import completion

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
DEVICES, MODELS = "More than one device", "Trained models"
FILES = (".csv", ".htm", ".html", ".json", ".md", ".parquet", ".pdf", ".png", ".svg", ".txt")
MOST_THREADS = 4096
OWN = "declared"
Texts = list[str] | None


def option(
    names: str,
    text: str,
    panel: str | None = None,
    complete: Callable[..., Any] | None = None,
    **settings: Any,
) -> Any:
    """`names`: as in the help, `--output -o FILE`; what it takes is left out where nothing is, or
    where the type says it. The help shows the first long name; others are those of an earlier
    release. `settings`: typer's.
    """
    words = names.split()
    flags = [word for word in words if word.startswith("-")]
    return typer.Option(
        *flags,
        metavar=words[-1] if len(words) > len(flags) else None,
        help=text,
        rich_help_panel=panel,
        autocompletion=complete,
        **settings,
    )


def argument(metavar: str, text: str, complete: Callable[..., Any] | None = None) -> Any:
    return typer.Argument(metavar=metavar, help=text, autocompletion=complete)


def own(declared: Any, default: Any = None) -> Any:
    """In place of the default of a parameter, or of a field of a group: an option or an argument
    that no other verb takes. See `expanded`.
    """
    return field(default=default, metadata={OWN: declared})


def own_option(names: str, *about: Any, default: Any = None, **settings: Any) -> Any:
    return own(option(names, *about, **settings), default)


def switch(names: str, text: str, panel: str | None = None, **settings: Any) -> Any:
    """An option without a value."""
    return own(option(names, text, panel, **settings), False)


# ---- what options are parsed into ----------------------------------------------------------------


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
            f"--runs {path}: a file; wanted the folder that holds the runs, {DEFAULT_ROOT} if not"
            " given; a page or an export is named with -o FILE"
        )
    return path


def set_threads(count: int | None) -> int | None:
    """For this process and all workers, before torch starts: it reads the variable once."""
    if count is not None:
        os.environ["OMP_NUM_THREADS"] = str(count)
    return count


def device_option(text: str, panel: str | None = HOW) -> Any:
    return option("--device auto|cpu|cuda", text, panel, completion.devices, parser=device_named)


# ---- which runs, and where they are --------------------------------------------------------------

Root = Annotated[
    Path,
    option(
        "--runs --out DIR",
        "Folder that holds the run folders.",
        OUTPUT,
        callback=results_folder,
        is_eager=True,
    ),
]
Salvage = Annotated[
    bool, option("--salvage", "Leave out rows that cannot be read, and say which on stderr.")
]
Anonymous = Annotated[
    bool, option("--anonymous", "Without names of hosts, users, folders and devices, and logs.")
]

# ---- what to measure -----------------------------------------------------------------------------

Backends = Annotated[
    str | None,
    option(
        "--backends A,B",
        "Backends, as naive,fused,sdpa; my_module:attend is a function of yours, which workers"
        " import.",
        WHAT,
        completion.backends,
    ),
]


# ---- how to measure, and limits ------------------------------------------------------------------

OwnWhere = Annotated[
    Device | None,
    device_option("Where to measure; auto, the default, takes a GPU if there is one."),
]
"""Of a command that measures no scenario."""
Where = Annotated[
    Device | None,
    device_option(
        "Where to measure; auto takes a GPU if there is one. A scenario's own if not given."
    ),
]
PickedDevice = Annotated[Device, device_option("Where; auto takes a GPU if there is one.")]
PlanName = Annotated[
    str | None,
    option(
        "--plan NAME",
        "quick, standard or rigorous; a scenario's own if not given, else standard.",
        HOW,
        completion.plans,
    ),
]
MeasureNames = Annotated[
    str | None,
    option(
        "--measure A,B",
        "latency, memory, utilization, energy, graphs, kernels; a scenario's own if not given."
        " latency,memory leaves out a GPU's counters.",
        HOW,
        completion.measures,
    ),
]
Threads = Annotated[
    int | None,
    option(
        "--threads COUNT",
        "Threads of torch on a CPU (OMP_NUM_THREADS); one per idle core if not given.",
        HOW,
        min=1,
        max=MOST_THREADS,
        callback=set_threads,
    ),
]
Wait = Annotated[
    bool,
    option(
        "--wait",
        "Wait for another run on this device to end; with --on, also for devices that are missing.",
        HOW,
    ),
]
WaitIdle = Annotated[
    str | None,
    option("--wait-idle TIME", "First wait until the cores are idle, so long at most: 10m.", HOW),
]
Seed = Annotated[int, option("--seed N", "Of the inputs and of the order of measuring.", HOW)]
Timeout = Annotated[
    float | None,
    option(
        "--timeout SECONDS",
        "Time limit of one step of a case, or of one trial of a wall; 60 if not given.",
        LIMITS,
    ),
]
MemoryGib = Annotated[
    float | None,
    option(
        "--memory-gib G",
        "Budget for inputs and peak together, in GiB; a safe share if not given.",
        LIMITS,
    ),
]

# ---- output --------------------------------------------------------------------------------------

AsJson = Annotated[bool, option("--json-lines --json", "Progress as JSON lines on stdout.", OUTPUT)]
Quiet = Annotated[bool, option("--quiet -q", "No progress and no summary.", OUTPUT)]

# ---- groups --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Several:
    """Stands for several options: annotated types by name, False or None if not given. A parameter
    `Annotated[Mapping[str, Any], Several(...)]` receives the values that were given.
    """

    options: Mapping[str, Any]


def _axes(*without: str) -> Several:
    """An option for each axis of a problem that has one."""
    names = [name for name, axis in AXES.items() if axis.option and name not in without]
    return Several({name: _axis(name) for name in names})


def _axis(name: str) -> Any:
    axis, names = AXES[name], f"--{name.replace('_', '-')}"
    if axis.type is bool:
        return Annotated[bool, option(names, axis.option, SHAPE)]
    metavar = "SIZE,SIZE" if axis.type is int else "A,B"
    complete = completion.values_of(name)
    return Annotated[str | None, option(f"{names} {metavar}", axis.option, SHAPE, complete)]


Axes = Annotated[Mapping[str, Any], _axes()]
WallAxes = Annotated[Mapping[str, Any], _axes("seq_len")]


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """A command with groups of options as parameters, as typer takes it: with an option for each.

    A group is a frozen dataclass, whose fields are options or groups, or `Several`. Its fields and
    the parameters have annotated types, or are their `own`.
    """
    signature = inspect.signature(command)

    @wraps(command)
    def with_options(**values: Any) -> None:
        command(**{name: _taken(one, values) for name, one in signature.parameters.items()})

    parameters = [one for group in signature.parameters.values() for one in _options(group)]
    with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_options


def _options(group: inspect.Parameter) -> Iterator[inspect.Parameter]:
    if several := _several(group):
        for name, annotation in several.items():
            yield _parameter(name, annotation, False if get_args(annotation)[0] is bool else None)
    elif is_dataclass(group.annotation):
        for one in _fields(group):
            yield from _options(one)
    else:
        yield _parameter(group.name, group.annotation, group.default)


def _taken(group: inspect.Parameter, values: Mapping[str, Any]) -> Any:
    if several := _several(group):
        return {name: values[name] for name in several if values[name] not in (None, False)}
    if not is_dataclass(group.annotation):
        return values[group.name]
    made: Any = group.annotation
    return made(**{one.name: _taken(one, values) for one in _fields(group)})


def _several(group: inspect.Parameter) -> Mapping[str, Any]:
    marks = [one for one in get_args(group.annotation)[1:] if isinstance(one, Several)]
    return marks[0].options if marks else {}


def _fields(group: inspect.Parameter) -> Iterator[inspect.Parameter]:
    for one in fields(group.annotation):
        yield _parameter(one.name, one.type, one)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """`default`: of a parameter; a field, also one in place of a default, gives its own."""
    if isinstance(default, Field):
        if OWN in default.metadata:
            annotation = Annotated[annotation, default.metadata[OWN]]
        default = inspect.Parameter.empty if default.default is MISSING else default.default
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
