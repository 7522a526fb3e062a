"""What measures and judges: `run`, `wall`, `doctor`.

Packs have such functions too, in a file of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from ..files.errors import BadInput
from .arguments import (
    DEFAULT_ROOT,
    Axes,
    Backends,
    Device,
    Models,
    Names,
    Patterns,
    Plan,
    Shape,
    named_backends,
    public,
    several,
    texts_of,
)
from .measuring import (
    How,
    Row,
    change_texts,
    measured,
    of_packs,
    torch_threads_kept,
    with_models,
)
from .runs import Run

if TYPE_CHECKING:
    from ..scenario import Scenario
    from ..scenario.selection import Selection

USUAL_BACKENDS = "naive,fused,sdpa"
WALL_BUDGET_S = 45.0  # with the workers' starts an answer within a minute


@public
def run(
    scenario: str | Path | Mapping[str, Any] | None = None,
    *,
    backends: Backends | None = None,
    out: str | Path = DEFAULT_ROOT,
    device: Device | None = None,
    plan: Plan | None = None,
    measure: Names | None = None,
    memory_gib: float | None = None,
    timeout_s: float | None = None,
    changes: Mapping[str, Any] | None = None,
    only: Patterns = (),
    skip: Patterns = (),
    shard: str | None = None,
    checkpoints: Models = (),
    tokens: str | Path | None = None,
    seed: int = 0,
    threads: int | None = None,
    allow_import: bool = False,
    on: Literal["ray"] | None = None,
    address: str | None = None,
    devices: int | None = None,
    device_kind: str | None = None,
    on_row: Callable[[Row], object] | None = None,
    wait: bool = False,
    wait_idle: str | None = None,
    quiet: bool = True,
    **axes: Unpack[Axes],
) -> Run:
    """Measure a scenario, or backends on shapes given by `axes`, in workers of its own, into a new
    folder under `out`; one row per case, whatever happens.

    `scenario`: a file's path, the name of a shipped one, YAML (text of more than one line), or the
    same as a mapping. `backends`: in place of the scenario's; names, and functions attend(q, k, v,
    *, causal, scale), whose modules the workers import: giving a function permits that.
    `measure`: "latency,memory" leaves out a GPU's counters. `memory_gib`: for inputs and peak
    together. `timeout_s`: of a step of a case. `changes`: fields
    to set, {"limits.max_cases": 500}, as --set does. `only`, `skip`: parts of case ids. `shard`:
    "1/8", a part of the plan. `checkpoints`: trained models whose heads to look at, alone or beside
    a scenario: a path, several, or {"name": path}; `tokens`: a file with the tokens to look at them
    with (docs/checkpoints.md). `threads`: of torch in the workers, on a CPU; one per idle core
    if not given. `allow_import`: workers may import the modules of backends like
    "attend@my_attention", also from the current folder. `on`: "ray", with `address`, `devices`,
    `device_kind`: docs/scaling.md. `on_row`: called with each row once it is on disk; what it
    raises ends the run, whose rows stay. `wait`: for another run on the device to end;
    `wait_idle`: first until the cores are idle, so long at most, "10m". `quiet`: print nothing;
    otherwise progress goes to stderr, in a notebook below the cell.

    A case that fails is a row and no exception. Raises Refusal where nothing is measured: BadInput
    (a ValueError), EnvironmentUnmet (no such device, or another run has it), NothingSelected.
    Ctrl-C raises KeyboardInterrupt once the rows are safe.
    """
    from ..run.start import start_run
    from ..scenario.selection import Selection, refuse_imports, refuse_unmatched
    from ..scenario.shards import read_shard

    names: list[str] | None = None
    folders: dict[str, str] = {}
    if backends is not None:
        names, folders = named_backends(backends)
    changed = change_texts(
        changes or {},
        device=device,
        plan=plan,
        measure=measure.split(",") if isinstance(measure, str) else measure,
        limits__memory_gib=memory_gib,
        limits__timeout_s=timeout_s,
    )
    selection = Selection(
        only=several(only),
        skip=several(skip),
        shard=None if shard is None else read_shard(shard),
    )
    selection = with_models(selection, checkpoints, tokens)
    if scenario is not None and axes:
        axis = next(iter(axes))
        raise BadInput(
            f"{axis}: cannot be combined with a scenario; change a scenario with"
            f' changes={{"grid.{axis}": ...}}'
        )
    if scenario is not None:
        planned = _read(scenario, changed + change_texts({}, backends=names))
    elif names is not None or axes:
        planned = _of_axes(names, axes, changed)
    else:
        planned, selection = _alone(selection, changed)
    refuse_unmatched([(planned, selection)])
    refuse_imports([one for one in planned.backends if one not in folders], allowed=allow_import)
    how = How(
        wait=wait,
        wait_idle=wait_idle,
        quiet=quiet,
        allow_import=allow_import or bool(folders),
        threads=threads,
        on_row=on_row,
        of_packs=of_packs(on, address, devices, device_kind),
        folders=folders.values(),
    )
    job = partial(start_run, planned, Path(out), seed, selection)
    return Run(measured(job, f"attnbench.run({planned.name!r})", how))


def _read(scenario: str | Path | Mapping[str, Any], changes: list[str]) -> "Scenario":
    from .. import scenario as read

    if isinstance(scenario, Mapping):
        return read.from_mapping(scenario, "scenario", changes)
    if isinstance(scenario, str) and "\n" in scenario:
        return read.from_text(scenario, "scenario", changes)
    return read.load(scenario, changes)


def _of_axes(
    backends: Sequence[str] | None, axes: Shape, changes: list[str], *, find_wall: bool = False
) -> "Scenario":
    from ..scenario import from_axes

    given = {} if backends is None else {"backends": ",".join(backends)}
    return from_axes({**given, **texts_of(axes)}, changes, find_wall=find_wall)


def _alone(selection: "Selection", changes: list[str]) -> "tuple[Scenario, Selection]":
    """Of the models alone. Raises BadInput."""
    from ..scenario.of_attachments import alone

    if not selection.attachments:
        raise BadInput(
            "scenario: nothing to run; wanted a scenario, such as 'quickstart', or checkpoints, or"
            " backends and shapes, such as backends='fused,sdpa', seq_len=512, heads=8, head_dim=64"
        )
    one = alone(selection.attachments, changes)
    return one.scenario, selection.narrowed(one.only, one.skip)


@public
def wall(
    backends: Backends = USUAL_BACKENDS,
    *,
    memory_gib: float | None = None,
    tolerance_ratio: float = 0.02,
    budget_s: float = WALL_BUDGET_S,
    device: Device | None = None,
    timeout_s: float | None = None,
    out: str | Path = DEFAULT_ROOT,
    threads: int | None = None,
    allow_import: bool = False,
    on_row: Callable[[Row], object] | None = None,
    wait: bool = False,
    wait_idle: str | None = None,
    quiet: bool = True,
    **shape: Unpack[Shape],
) -> Run:
    """Find the longest sequence that fits into memory, as `attnbench wall`; `Run.walls` has the
    answers.

    `tolerance_ratio`: how close to the wall is close enough. `budget_s`: for the trials of all
    walls; what is not tried by then stays as predicted. The rest as for `run`. Raises Refusal.
    """
    from ..run.start import start_run
    from ..scenario.selection import Selection, refuse_imports

    names, folders = named_backends(backends)
    changes = change_texts(
        {},
        device=device,
        limits__memory_gib=memory_gib,
        limits__timeout_s=timeout_s,
        limits__wall_tolerance_ratio=tolerance_ratio,
        limits__wall_budget_s=budget_s,
    )
    planned = _of_axes(names, shape, changes, find_wall=True)
    refuse_imports([one for one in planned.backends if one not in folders], allowed=allow_import)
    how = How(
        wait=wait,
        wait_idle=wait_idle,
        quiet=quiet,
        allow_import=allow_import or bool(folders),
        threads=threads,
        on_row=on_row,
        folders=folders.values(),
    )
    job = partial(start_run, planned, Path(out), 0, Selection())
    return Run(measured(job, "attnbench.wall()", how))


# ---- this machine --------------------------------------------------------------------------------


@public
def doctor(
    *,
    deep: bool = False,
    device: Device = "auto",
    out: str | Path = DEFAULT_ROOT,
    wait: bool = False,
    quiet: bool = True,
) -> dict[str, Any]:
    """What this machine can measure, and what stands in the way, as `attnbench doctor --json`.

    `deep`: also measure what runs are judged by, about 2 minutes, once, kept in
    `out`. Raises Refusal.
    """
    with torch_threads_kept():
        from ..doctor import examine, measure

        root, options = (
            Path(out),
            partial(How(wait=wait, quiet=quiet).options, "attnbench.doctor()"),
        )
        seen = examine(root, quiet=quiet)
        if deep:
            seen = measure(seen, device, root, options, wait=wait, quiet=quiet)
        return seen.as_dict()
