"""A scenario: a question, and the grid of cases that answers it. Read from YAML or from flags;
wrong ones raise BadInput.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, ValidationError

from ...impls.discovery.names import real_name, real_names
from ...impls.problem import Dtype, Mask, Passes, Problem, Scope
from ..errors import BadInput, shown
from .changes import add_backends, apply, expand_aliases, flag_document
from .check import problems_of
from .fields import (
    MEANING,
    Align,
    AtLeastOne,
    Axes,
    AxisName,
    DeviceKind,
    ExtraCase,
    Grid,
    Limits,
    Name,
    Plan,
    Question,
    Size,
    Strict,
    Text,
    as_tuple,
    list_to_tuple,
)
from .grid import (
    AXES,
    AxisValues,
    Values,
    case_values,
    combinations,
    grid_size,
    unique,
    wall_values,
)
from .messages import lines
from .names import FOLDER, find, summaries
from .yaml_document import Document
from .yaml_text import parse_yaml, read_yaml

__all__ = [
    "Limits",
    "Plan",
    "Scenario",
    "from_axes",
    "from_mapping",
    "from_text",
    "load",
    "schema",
    "summaries",
]


NOTHING: Mapping[str, str] = MappingProxyType({})
Measure = Literal["latency", "memory", "utilization", "energy", "graphs", "kernels"]
Backends = Annotated[
    tuple[str, ...],
    AtLeastOne,
    BeforeValidator(as_tuple, list[str] | str),
    AfterValidator(real_names),
]
Contrast = Annotated[tuple[AxisName, ...], BeforeValidator(as_tuple, list[AxisName] | AxisName)]
Cases = Annotated[tuple[ExtraCase, ...], BeforeValidator(list_to_tuple)]
Measures = Annotated[
    tuple[Measure, ...], AtLeastOne, BeforeValidator(as_tuple, list[Measure] | Measure)
]


Studies = Annotated[tuple[str, ...], BeforeValidator(as_tuple, list[str] | str)]


class Scenario(Strict):
    """One YAML file. Every backend is measured on every problem of the grid and on every explicit
    case.
    """

    name: Name = Field(
        description=(
            "Short name; run folders carry it: lowercase letters, digits, _ and -, at most 64."
        )
    )
    question: Question = Field(
        max_length=500, description="What the report answers, in plain words."
    )
    description: Text = Field(
        default="", max_length=5000, description="Background, for readers of the report."
    )
    backends: Backends = Field(description="Names of backends, see `attnbench list backends`.")
    baseline: Annotated[str, AfterValidator(real_name)] | None = Field(
        default=None, description="The backend that the others are compared with; one of backends."
    )
    grid: Grid = Field(
        default=Grid(),
        description=(
            "Values per axis; every combination is one problem. Single values need no list."
        ),
    )
    cases: Cases = Field(
        default=(),
        description="Problems that fit no grid; an axis that is left out comes from the grid.",
    )
    contrast: Contrast = Field(
        default=(),
        description="Axes whose values are measured side by side, so that their ratios are paired.",
    )
    dtype: Dtype = Field(
        default="fp32", description=f"{MEANING['dtype']} Counts where the grid does not say."
    )
    causal: bool = Field(
        default=False, description=f"{MEANING['causal']} Counts where the grid does not say."
    )
    causal_align: Align | None = Field(
        default=None, description=f"{MEANING['causal_align']} Counts where the grid does not say."
    )
    mask: Mask = Field(
        default="none", description=f"{MEANING['mask']} Counts where the grid does not say."
    )
    window: Size | None = Field(
        default=None, description=f"{MEANING['window']} Counts where the grid does not say."
    )
    passes: Passes = Field(
        default="forward", description=f"{MEANING['passes']} Counts where the grid does not say."
    )
    scope: Scope = Field(
        default="core", description=f"{MEANING['scope']} Counts where the grid does not say."
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="Where to measure; auto takes a GPU where there is one."
    )
    plan: Plan = Field(
        default=Plan(),
        description="How long and how often to measure: quick, standard, rigorous, or fields.",
    )
    limits: Limits = Field(
        default=Limits(), description="What stops a case, and how many cases are too many."
    )
    measure: Measures = Field(
        default=("latency", "memory"),
        description=(
            "What to measure: latency, memory, utilization (windows of a steady loop under the"
            " device's counters), energy (in the same windows), graphs (such windows also for the"
            " call as a CUDA graph), kernels (what a call launches)."
        ),
    )
    watch: Axes = Field(
        default=Axes(),
        description=(
            "Which problems utilization, energy and kernels are measured on: those whose axes have"
            " one of the values given here. All problems if not given."
        ),
    )
    studies: Studies = Field(
        default=(),
        description=(
            "What to look at without timing it, on the smallest problem: names from `attnbench list"
            " studies`."
        ),
    )
    find_wall: bool = Field(
        default=False,
        description=(
            "Also look for the longest N that fits, per backend and combination of the other axes;"
            " the grid may then lack seq_len."
        ),
    )
    _source: str = PrivateAttr("")

    @property
    def source(self) -> str:
        """The file it was read from, or where else it came from."""
        return self._source

    @property
    def devices(self) -> tuple[DeviceKind, ...]:
        """The kinds of device that it may run on."""
        return ("cpu", "cuda") if self.device == "auto" else (self.device,)

    def axes(self, device: str) -> dict[str, tuple[Any, ...]]:
        """The values of each axis on a kind of device; axes that keep their usual value are
        absent.
        """
        usual = {"batch": (1,)} | {
            axis: (getattr(self, axis),) for axis in AXES if axis in Scenario.model_fields
        }
        special = self.grid.cuda if device == "cuda" else self.grid.cpu
        chosen = {
            axis: getattr(special, axis, ()) or getattr(self.grid, axis) or usual.get(axis, ())
            for axis in AXES
        }
        return {axis: values for axis, values in chosen.items() if values and values != (None,)}

    def watched(self) -> dict[str, list[Any]]:
        """The axes of `watch` that say something, with their values."""
        return {axis: list(values) for axis in AXES if (values := getattr(self.watch, axis))}

    def extra_cases(self, device: str) -> Iterator[tuple[int, Values]]:
        """Explicit cases of a kind of device, by their place in the list: what they say
        themselves.
        """
        for index, case in enumerate(self.cases):
            if case.device in (None, device):
                yield index, case.model_dump(exclude={"device"}, exclude_none=True)

    def count(self, device: str) -> int:
        """How many cases and walls it plans there, repetitions included; nothing is expanded."""
        axes = self.axes(device)
        walls = grid_size({**axes, "seq_len": (1,)}) if self.find_wall else 0
        return len(self.backends) * (
            grid_size(axes) + sum(1 for _ in self.extra_cases(device)) + walls
        )

    def wall_values(self, device: str) -> Iterator[Values]:
        """What the walls to look for are like, each at a length that stands for any."""
        return wall_values(self.axes(device)) if self.find_wall else iter(())

    def problem_groups(self, device: str) -> tuple[list[tuple[Problem, ...]], int]:
        """Problems that are measured side by side, and how many repetitions were left out.

        A group is one combination of the axes that are not in `contrast`; an explicit case is a
        group of its own.
        """
        return unique(self._values(device, self.axes(device)))

    def _values(self, device: str, axes: AxisValues) -> Iterator[tuple[Values, ...]]:
        yield from combinations(axes, self.contrast)
        for _, own in self.extra_cases(device):
            yield (case_values(own, axes),)

    def resolved(self, device: str) -> dict[str, Any]:
        """The scenario as it counts on a kind of device, for run.json."""
        plain = self.model_dump(mode="json", exclude={"grid", "cases", "watch", *AXES})
        return {
            **plain,
            "watch": self.watched(),
            "source": (
                f"{FOLDER.name}/{Path(self.source).name}"
                if Path(self.source).resolve().parent == FOLDER.resolve()
                else self.source
            ),
            "grid": {axis: list(values) for axis, values in self.axes(device).items()},
            "cases": [own for _, own in self.extra_cases(device)],
        }


def load(
    path_or_name: str | Path,
    changes: Iterable[str] = (),
    more_backends: Mapping[str, str] = NOTHING,
) -> Scenario:
    """The scenario in a file, or a shipped one by name, with changes such as limits.memory_gib=2.
    Raises BadInput.

    `more_backends`: names to add, each with the flag that asked for it.
    """
    return validated(
        read_yaml(path_or_name if isinstance(path_or_name, Path) else find(path_or_name)),
        changes,
        more_backends,
    )


def from_axes(
    flags: Mapping[str, str | bool],
    changes: Iterable[str] = (),
    more_backends: Mapping[str, str] = NOTHING,
    *,
    find_wall: bool = False,
) -> Scenario:
    """A scenario from flags: {"backends": "naive,fused", "seq_len": "512,1k", "causal": True}.
    Raises BadInput.
    """
    return validated(flag_document(flags, find_wall=find_wall), changes, more_backends)


def from_text(text: str, origin: str, changes: Iterable[str] = ()) -> Scenario:
    """A scenario from YAML that stands in no file; messages begin with `origin`. Raises
    BadInput.
    """
    return validated(parse_yaml(text, origin), changes)


def from_mapping(data: Mapping[str, Any], origin: str, changes: Iterable[str] = ()) -> Scenario:
    """A scenario from Python data; messages begin with `origin`. Raises BadInput."""
    return validated(Document(copied(data), origin), changes)


def copied(value: Any) -> Any:
    """Mappings and sequences as fresh dicts and lists, which may then be changed."""
    if isinstance(value, Mapping):
        return {key: copied(inner) for key, inner in value.items()}
    return [copied(inner) for inner in value] if isinstance(value, list | tuple) else value


def validated(
    document: Document, changes: Iterable[str], more_backends: Mapping[str, str] = NOTHING
) -> Scenario:
    """The document as a scenario. Fields first, then what only shows between fields. Raises
    BadInput with all of one kind.
    """
    if document.data is None:
        raise BadInput(
            f"{document.origin}: scenario is empty; wanted name, question, backends and grid; see"
            " scenarios/README.md"
        )
    if not isinstance(document.data, dict):
        raise BadInput(
            f"{document.place(())}: found {shown(document.data)}; wanted a mapping of fields, such"
            " as `name: my_scenario`"
        )
    expand_aliases(document)
    apply(document, changes)
    if more_backends:
        add_backends(document, more_backends)
    try:
        scenario = Scenario.model_validate(document.data)
    except ValidationError as error:
        raise BadInput(*lines(error.errors(include_url=False), document, Scenario)) from None
    problems = problems_of(scenario, document)
    if problems:
        raise BadInput(*problems)
    scenario._source = document.origin
    return scenario


def schema() -> dict[str, Any]:
    """The JSON Schema of scenario files."""
    from .json_schema import schema_of

    return schema_of(Scenario)
