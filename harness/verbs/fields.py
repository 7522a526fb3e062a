"""Fields that several requests have, and the headings of options in the help."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from ..files.errors import BadInput, Spelling, option
from . import completion
from .request import Option

WHAT, SHAPE, HOW = "What to measure", "Shape of the problem", "How to measure"
LIMITS, EARLIER, OUTPUT = "Limits", "An earlier run", "Output"
DEVICES, MODELS = "More than one device", "Trained models"
GROUPS = ("", WHAT, SHAPE, HOW, LIMITS, EARLIER, DEVICES, MODELS, OUTPUT)
"""In the order of the help."""
DEFAULT_ROOT = Path("results")
MOST_THREADS = 4096
PAGES_AND_ROWS = ".csv .htm .html .json .md .parquet .pdf .png .svg .txt"

# ---- values as they are given --------------------------------------------------------------------


def listed(value: Any) -> Any:
    """One value or several, as a tuple."""
    if isinstance(value, str | Path | Mapping):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def separated(value: Any) -> Any:
    """Names with commas or spaces between them, or several, as a tuple."""
    several = listed(value)
    if not isinstance(several, Sequence) or not all(isinstance(one, str) for one in several):
        return value
    return tuple(name for one in several for name in re.split(r"[,\s]+", one) if name)


def results_folder(value: Any) -> Any:
    """Raises BadInput for a file."""
    path = Path(value) if isinstance(value, str | Path) else value
    if isinstance(path, Path) and (
        path.is_file() or (path.suffix.lower() in PAGES_AND_ROWS.split() and not path.is_dir())
    ):
        raise BadInput(
            f"{option('runs')} {path}: a file; wanted the folder that holds the runs, results if"
            " not given; a page or an export is named with -o FILE"
        )
    return path


def device_kind(value: Any) -> Any:
    """gpu is cuda."""
    from ..cases.case import VALUE_ALIASES

    return VALUE_ALIASES["device"].get(value, value) if isinstance(value, str) else value


Several = tuple[str, ...]
"""What may be given more than once."""
Values = int | float | str | Sequence[int | float | str]
"""Of an axis."""
DeviceKind = Literal["auto", "cpu", "cuda"]
PlanKind = Literal["quick", "standard", "rigorous"]

# ---- fields --------------------------------------------------------------------------------------


def device_option(help_: str) -> Option:
    return Option("", HOW, help_, parse=device_kind)


Runs = Annotated[Path, Option("DIR", OUTPUT, also=("out",), parse=results_folder)]
"""Folder that holds the run folders."""
Device = Annotated[
    DeviceKind | None,
    device_option(
        "Where to measure; auto takes a GPU if there is one. A scenario's own if not given."
    ),
]
Plan = Annotated[PlanKind | None, Option("NAME", HOW)]
"""quick, standard or rigorous; a scenario's own if not given, else standard."""
Measures = Annotated[
    Several | None, Option("A,B", HOW, complete=completion.measures, parse=separated)
]
"""latency, memory, utilization, energy, graphs, kernels; a scenario's own if not given.
latency,memory leaves out a GPU's counters.
"""
Threads = Annotated[int | None, Option("COUNT", HOW, least=1, most=MOST_THREADS)]
"""Threads of torch on a CPU (OMP_NUM_THREADS); one per idle core if not given."""
Wait = Annotated[bool, Option(group=HOW)]
"""Wait for another run on this device to end; with --on, also for devices that are missing."""
WaitIdle = Annotated[str | None, Option("TIME", HOW)]
"""First wait until the cores are idle, so long at most: 10m."""
Seed = Annotated[int, Option("N", HOW)]
"""Of the inputs and of the order of measuring."""
Timeout = Annotated[float | None, Option("SECONDS", LIMITS)]
"""Time limit of one step of a case, or of one trial of a wall; 60 if not given."""
MemoryGib = Annotated[float | None, Option("G", LIMITS)]
"""Budget for inputs and peak together, in GiB; a safe share if not given."""
AllowImport = Annotated[bool, Option(group=WHAT)]
"""Let workers import and run the modules that a scenario names."""
Margin = Annotated[str, Option("PERCENT")]
"""Times and energies within it are the same."""
Salvage = Annotated[bool, Option()]
"""Leave out rows that cannot be read, and say which on stderr."""
Anonymous = Annotated[bool, Option()]
"""Without names of hosts, users, folders and devices, and logs."""
Quiet = Annotated[bool, Option(group=OUTPUT, short="-q")]
"""No progress and no summary."""
JsonLines = Annotated[bool, Option(group=OUTPUT, also=("json_lines",), of=Spelling.SHELL)]
"""Progress as JSON lines on stdout."""
AsJson = Annotated[bool, Option(group=OUTPUT, of=Spelling.SHELL)]
"""As JSON."""
OnRow = Annotated[Callable[[Mapping[str, Any]], object] | None, Option(of=Spelling.PYTHON)]
"""Called with each row once it is on disk."""
OutputFile = Annotated[str | None, Option("FILE", short="-o")]
"""Where to; - is stdout."""
RunName = (
    "Folder of a run, or its name under --runs; 'latest' finished last, a scenario's name is its"
    " newest run."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HowMeasured:
    """Of `run`, of `wall` and of pytest."""

    allow_import: AllowImport = False
    device: Device = None
    threads: Threads = None
    wait: Wait = False
    wait_idle: WaitIdle = None
    seed: Seed = 0
    timeout: Timeout = None
    memory_gib: MemoryGib = None
    runs: Runs = DEFAULT_ROOT
