"""A scenario: a question, and the grid of cases that answers it.

From axes to problems by pure functions; only Problem checks the values.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, PrivateAttr

from ...impls.discovery.names import real_name, real_names
from ...impls.problem import AXES, Problem, windowed
from ..cases.case import ALIASES, VALUE_ALIASES, placeholder_seq_len
from ..devices.probes import measures
from . import fields
from .fields import Axes, DeviceKind, ExtraCase, Grid, Limits, Plan
from .names import FOLDER

if TYPE_CHECKING:
    AxisName = str
    Measure = str
else:  # names known only when the program runs
    AxisName = Literal[tuple(AXES)]
    Measure = Literal[("latency", "memory", "graphs", *measures())]


# Cases are planned in this order of the axes.
ORDER: tuple[str, ...] = tuple(Problem.__dataclass_fields__)
REQUIRED = ("seq_len", "d_model", "heads")
"""Where there are lengths, seq_len follows from them."""

Device = Literal["auto", "cpu", "cuda"]
AxisValues = Mapping[str, tuple[Any, ...]]
Values = dict[str, Any]


def missing_axes(axes: Mapping[str, Any], *, walls: bool = False) -> list[str]:
    """Required axes without a value. `walls`: of a scenario that searches the length."""
    given = {"seq_len"} if walls or axes.get("lengths") else set()
    return [axis for axis in REQUIRED if axis not in given and not axes.get(axis)]


def combinations(axes: AxisValues, contrast: Sequence[str]) -> Iterator[tuple[Values, ...]]:
    """One group per combination of the other axes: all combinations of the contrast axes. None of a
    grid that only gives values to explicit cases.
    """
    if missing_axes(axes):
        return
    some = {
        "some_causal": True in axes["causal"],
        "some_windowed": any(map(windowed, axes["mask"])),
    }

    def choices(inner: bool) -> Iterator[Values]:
        names = [axis for axis in axes if (axis in contrast) is inner]
        for values in product(*(axes[axis] for axis in names)):
            yield dict(zip(names, values, strict=True))

    for fixed in choices(inner=False):
        yield tuple(drop_inapplicable(fixed | varied, **some) for varied in choices(inner=True))


def case_values(case: Values, axes: AxisValues) -> Values:
    """An explicit case with the values that it takes from the grid.

    Raises ValueError if the grid has several values for an axis, or if a required axis is missing.
    """
    others = {"seq_len": "lengths", "kv_seq_len": "lengths", "lengths": "seq_len"}
    missing = [axis for axis in axes if axis not in case and others.get(axis) not in case]
    for axis in missing:
        if len(axes[axis]) > 1:
            raise ValueError(
                f"{axis} is not given, and the grid has {len(axes[axis])} values of it; wanted one;"
                f" give {axis} in the case"
            )
    values = {**{axis: axes[axis][0] for axis in missing}, **case}
    for axis in missing_axes(values):
        raise ValueError(
            f"{axis} is missing; wanted seq_len, d_model and heads; give {axis} in the case or"
            " in the grid"
        )
    return drop_inapplicable(
        values, some_causal="causal_align" not in case, some_windowed="window" not in case
    )


def drop_inapplicable(values: Values, *, some_causal: bool, some_windowed: bool) -> Values:
    """Remove an alignment or a window that was meant for other problems of the grid."""
    if some_causal and not values["causal"]:
        values.pop("causal_align", None)
    if some_windowed and not windowed(values["mask"]):
        values.pop("window", None)
    return values


Backends = Annotated[
    tuple[fields.Backend, ...],
    fields.AtLeastOne,
    fields.one_or_list(str),
    AfterValidator(real_names),
]


@fields.with_axes(fields.one, scenario_wide=True)
class Scenario(fields.Strict):
    """One YAML file. Every backend is measured on every problem of the grid and of `cases`."""

    name: fields.Name
    """Short name, used in the names of run folders: lowercase letters, digits, _ and -, at most
    64."""
    question: fields.Question = Field(max_length=500)
    """The question that the report answers, in plain words."""
    description: fields.Text = Field(default="", max_length=5000)
    """Background, for readers of the report."""
    takes_min: float | None = Field(default=None, gt=0, le=10_000)
    """Minutes on two CPU cores, shown by `attnbench list`; leave it out if the scenario needs a
    GPU."""
    backends: Backends
    """Names of backends, such as naive, fused and sdpa; see `attnbench list backends`."""
    baseline: Annotated[str, AfterValidator(real_name)] | None = None
    """The backend that others are compared with (default: the first of backends)."""
    grid: Grid = Grid()
    """Values per axis; every combination is one problem. Single values need no list."""
    cases: Annotated[tuple[ExtraCase, ...], Field(strict=False)] = ()
    """Problems outside the grid; an axis left out comes from the grid."""
    contrast: Annotated[
        tuple[Annotated[AxisName, fields.other_names(ALIASES, AxisName)], ...],
        fields.AtMost,
        fields.one_or_list(AxisName),
    ] = ()
    """Axes whose values are measured side by side, so that their ratios are paired."""
    device: Annotated[Device, fields.other_names(VALUE_ALIASES["device"], Device)] = "auto"
    """Where to measure; auto takes a GPU if there is one."""
    plan: Plan = Plan()
    """How long and how often to measure: quick, standard, rigorous, or fields."""
    limits: Limits = Limits()
    """What stops a case, and how many cases are too many."""
    measure: Annotated[tuple[Measure, ...], fields.AtLeastOne, fields.one_or_list(Measure)] = (
        "latency",
        "memory",
    )
    """What to measure: latency, memory, utilization (the device's counters over windows of a steady
    loop), energy (over the same windows), graphs (such windows also for the call as a CUDA graph),
    kernels (which kernels a call launches); `attnbench list probes` shows the columns of each."""
    measure_on_cuda: Annotated[tuple[Measure, ...], fields.AtMost, fields.one_or_list(Measure)] = ()
    """What to measure on a GPU, unless `measure` is given."""
    watch: Axes = Axes()
    """Measure utilization, energy and kernels only on problems whose axes have these values
    (default: all problems)."""
    studies: Annotated[tuple[fields.Study, ...], fields.AtMost, fields.one_or_list(str)] = ()
    """What to examine beside the cases, on the smallest problem: names from `attnbench list
    studies`; of a study in parts one value, as NAME:VALUE."""
    find_wall: bool = False
    """Also find the longest N that fits, per backend and combination of the other axes; the grid
    may then lack seq_len."""
    _source: str = PrivateAttr("")

    @property
    def source(self) -> str:
        """The file it was read from, or where else it came from."""
        return self._source

    @property
    def stored_source(self) -> str:
        """The source as files of a run name it: a shipped file by its place in the package."""
        shipped = Path(self.source).resolve().parent == FOLDER.resolve()
        return f"{FOLDER.name}/{Path(self.source).name}" if shipped else self.source

    @property
    def devices(self) -> tuple[DeviceKind, ...]:
        """The kinds of device that it may run on."""
        return ("cpu", "cuda") if self.device == "auto" else (self.device,)

    def measured(self, device: str) -> tuple[str, ...]:
        """What to measure on a kind of device."""
        is_given = "measure" in self.model_fields_set
        on_cuda = self.measure_on_cuda if device == "cuda" and not is_given else ()
        return on_cuda or self.measure

    def axes(self, device: str) -> dict[str, tuple[Any, ...]]:
        """The values of each axis on a kind of device, without axes that nothing sets."""
        special = self.grid.cuda if device == "cuda" else self.grid.cpu
        chosen = {
            name: getattr(special, name, ())
            or getattr(self.grid, name)
            or (getattr(self, name, AXES[name].given),)
            for name in ORDER
        }
        return {name: values for name, values in chosen.items() if values != (None,)}

    def watched(self) -> dict[str, list[Any]]:
        """The axes that `watch` sets, with their values."""
        return {name: list(values) for name in ORDER if (values := getattr(self.watch, name))}

    def extra_cases(self, device: str) -> Iterator[tuple[int, Values]]:
        """Explicit cases for a kind of device: index in `cases`, and the axes that each sets."""
        for index, case in enumerate(self.cases):
            if case.device in (None, device):
                yield index, case.model_dump(exclude={"device"}, exclude_none=True)

    def count(self, device: str) -> int:
        """How many cases and walls it plans there, repetitions included; nothing is expanded."""
        axes = self.axes(device)
        problems = sum(1 for _ in self.extra_cases(device))
        for grid in (axes, {**axes, "seq_len": (1,)})[: 1 + self.find_wall]:
            problems += 0 if missing_axes(grid) else prod(map(len, grid.values()))
        return len(self.backends) * problems

    def wall_values(self, device: str) -> Iterator[Values]:
        """The axes of each wall to find: all combinations, at a placeholder length."""
        if not self.find_wall:
            return
        others = {axis: values for axis, values in self.axes(device).items() if axis != "seq_len"}
        for kv_seq_len in others.get("kv_seq_len", (None,)):
            fixed = {} if kv_seq_len is None else {"kv_seq_len": (kv_seq_len,)}
            length = {"seq_len": (placeholder_seq_len(kv_seq_len),)}
            for (values,) in combinations(others | fixed | length, ()):
                yield values

    def problem_groups(self, device: str) -> tuple[list[tuple[Problem, ...]], int]:
        """Problems that are measured side by side, and how many repetitions were left out.

        A group is one combination of the axes that are not in `contrast`; an explicit case is a
        group of its own. Raises ValueError for values that are no problem.
        """
        axes = self.axes(device)
        own = ((case_values(case, axes),) for _, case in self.extra_cases(device))
        seen: set[Problem] = set()
        kept: list[tuple[Problem, ...]] = []
        duplicates = 0
        for group in chain(combinations(axes, self.contrast), own):
            problems = dict.fromkeys(Problem(**values) for values in group)
            fresh = tuple(problem for problem in problems if problem not in seen)
            duplicates += len(group) - len(fresh)
            seen.update(fresh)
            if fresh:
                kept.append(fresh)
        return kept, duplicates

    def resolved(self, device: str) -> dict[str, Any]:
        """The scenario with all values set for a kind of device, for run.json."""
        plain = self.model_dump(
            mode="json", exclude={"grid", "cases", "watch", "measure_on_cuda", *AXES}
        )
        return {
            **plain,
            "measure": list(self.measured(device)),
            "watch": self.watched(),
            "source": self.stored_source,
            "grid": {name: list(values) for name, values in self.axes(device).items()},
            "cases": [own for _, own in self.extra_cases(device)],
        }
