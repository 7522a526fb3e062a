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
            f"{option('runs')} {path}: a file; wanted the folder of runs (default: results); to"
            " name a page or an export use -o FILE"
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
"""Folder of runs."""
Device = Annotated[
    DeviceKind | None,
    device_option(
        "Device to measure on (default: the scenario's); auto takes a GPU if there is one."
    ),
]
AutoDevice = Annotated[
    DeviceKind | None,
    device_option("Device to measure on (default: auto); auto takes a GPU if there is one."),
]
Plan = Annotated[PlanKind | None, Option("NAME", HOW)]
"""quick, standard or rigorous (default: the scenario's)."""
Measures = Annotated[
    Several | None, Option("A,B", HOW, complete=completion.measures, parse=separated)
]
"""What to measure: latency, memory, utilization, energy, graphs, kernels (default: the scenario's).
On a GPU latency,memory skips the counters.
"""
Threads = Annotated[int | None, Option("COUNT", HOW, least=1, most=MOST_THREADS)]
"""Torch threads on a CPU (default: one per idle core); sets OMP_NUM_THREADS."""
Wait = Annotated[bool, Option(group=HOW)]
"""Wait for another run on this device to end; with --on also for missing devices."""
WaitIdle = Annotated[str | None, Option("TIME", HOW)]
"""Wait up to TIME for idle cores, such as 10m."""
Seed = Annotated[int, Option("N", HOW)]
"""Random seed for inputs and order."""
Timeout = Annotated[float | None, Option("SECONDS", LIMITS)]
"""Time limit for one step of a case or one trial of a wall (default: 60)."""
MemoryGib = Annotated[float | None, Option("G", LIMITS)]
"""Memory budget in GiB (default: a safe share); inputs and peak together."""
AllowImport = Annotated[bool, Option(group=WHAT)]
"""Let workers import and run modules that a scenario names."""
Margin = Annotated[str, Option("PERCENT")]
"""Times and energies within this margin count as the same."""
Salvage = Annotated[bool, Option()]
"""Skip unreadable rows and list them on stderr."""
Anonymous = Annotated[bool, Option()]
"""Leave out logs and the names of hosts, users, folders and devices."""
Quiet = Annotated[bool, Option(group=OUTPUT, short="-q")]
"""Print neither progress nor summary."""
JsonLines = Annotated[bool, Option(group=OUTPUT, also=("json_lines",), of=Spelling.SHELL)]
"""Print progress as JSON lines on stdout."""
AsJson = Annotated[bool, Option(group=OUTPUT, of=Spelling.SHELL)]
"""Print JSON."""
OnRow = Annotated[Callable[[Mapping[str, Any]], object] | None, Option(of=Spelling.PYTHON)]
"""Called with each row after it is written to disk."""
OutputFile = Annotated[str | None, Option("FILE", short="-o")]
"""File to write; - is stdout."""
RunName = (
    "Run folder, or a run's name under --runs: 'latest' is the last finished run, a scenario's name"
    " its newest run."
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
