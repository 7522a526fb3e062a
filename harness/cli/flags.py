"""The options that several verbs share, with their help."""

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from ..axes import AXES

DEFAULT_ROOT = Path("results")


class Device(StrEnum):
    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


Root = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder that holds the run folders.")
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="Folder of a run or a suite, or its name under --out; 'latest' finished last.",
    ),
]
Imported = Annotated[
    list[str] | None,
    typer.Option(
        "--backend",
        metavar="MODULE:ATTRIBUTE",
        help="Also this callable or module of yours; needs --allow-import. Repeatable.",
    ),
]
AllowImport = Annotated[
    bool,
    typer.Option(
        "--allow-import", help="Let workers import and run the modules that --backend names."
    ),
]
Where = Annotated[
    Device | None, typer.Option(help="Where to measure; auto takes a GPU if there is one.")
]
Timeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", help="Time limit of one step of a case, or of one trial of a wall."
    ),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another run on this device to end.")]
Seed = Annotated[int, typer.Option(help="Of the inputs and of the order of measuring.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
AsJson = Annotated[bool, typer.Option("--json", help="Progress as JSON lines on stdout.")]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", "-n", help="Show every case with its predicted bytes; measure nothing."
    ),
]


def axis_options(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator: one option per axis takes the place of the command's parameter `axes`.

    The command receives the axes that were given, by name.
    """
    names = [name for name, axis in AXES.items() if axis.option and name not in without]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_options(**values: Any) -> None:
            axes = {name: values.pop(name) for name in names}
            given = {name: value for name, value in axes.items() if value not in (None, False)}
            command(axes=given, **values)

        signature = inspect.signature(command)
        parameters = list(signature.parameters.values())
        place = list(signature.parameters).index("axes")
        parameters[place : place + 1] = [_axis_parameter(name) for name in names]
        with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_options

    return decorate


def _axis_parameter(name: str) -> inspect.Parameter:
    axis, kind = AXES[name], inspect.Parameter.POSITIONAL_OR_KEYWORD
    if axis.type is bool:
        option = typer.Option(f"--{name.replace('_', '-')}", help=axis.option)
        return inspect.Parameter(name, kind, default=False, annotation=Annotated[bool, option])
    option = typer.Option(help=axis.option)
    return inspect.Parameter(name, kind, default=None, annotation=Annotated[str | None, option])
