"""What is stored of a run is what is measured: run.json, as a new run writes it and a resumed one
reads it.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...impls import is_ours
from ...impls.problem import Problem
from ..cases.case import groups_of, study_of, wall_of
from ..devices.probes import measures
from ..measure.physical_floor import Device
from ..rows.model import fault
from ..rows.run_files import PLANNED, Document
from ..rows.values import Count, Int, Part
from ..scenario import Limits, Plan, Scenario
from ..scenario.fields import DeviceKind
from ..scenario.shards import Shard, Units


class PartOfPlan(Part):
    """A shard. `elsewhere`: `cases`, `walls` and `studies` of the others."""

    number: Annotated[Int, Field(ge=1)]
    of: Annotated[Int, Field(ge=1)]
    elsewhere: dict[str, list[Document]]


class HowToMeasure(Part):
    """What measuring asks of a scenario."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    plan: Plan
    limits: Limits
    measure: list[str]
    baseline: str | None
    contrast: list[str]
    watch: dict[str, list[Any]] = Field({})


class RunSpec(BaseModel):
    """The fields are those of run.json, in its order, and below each its line of docs/format.md;
    the properties are what measuring asks for.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True
    )

    attnbench: str = ""
    """the package's version"""
    started_utc: str = ""
    """ISO 8601"""
    command: list[str] = []
    """how the run was started"""
    scenario: Document
    """with defaults filled in: `name`, `question`, `backends`, `plan`, `limits`, `measure`, ..."""
    own_backends: list[str] = []
    """the backends from outside: the user's own, or another package's"""
    device: DeviceKind
    """`cpu` or `cuda`"""
    memory_bytes: Count
    """the budget of a case: inputs and peak together"""
    seed: Int
    """of the inputs and of the order of measuring"""
    environment: Document
    """machine, versions and settings that numbers depend on; null: not known"""
    calibration: Document | None = None
    """the newest line of [calibration.jsonl](#calibrationjsonl) for this device"""
    devices: list[Document] | None = None
    """several that measured, or merged: `host`, `device_uuid`, `device_name`, `environment`"""
    cases: list[Document]
    """the plan: `case`, its `group`, and the problem. A case without a row was not reached"""
    walls: list[Document] = []
    """the searches to make: `case` and the problem"""
    studies: list[Document] = []
    """the studies to run: `case`, `study`, its `part` if it has several, and the problem"""
    shard: PartOfPlan | None = None
    """of `--shard`: `number`, `of`, and `elsewhere`: the cases, walls and studies of the others"""
    merged: list[Document] | None = None
    """of `attnbench merge`: each shard's `number`, `run`, `environment`, `calibration`, ..."""

    @classmethod
    def new(
        cls,
        scenario: Scenario,
        planned: Mapping[str, Any],
        environment: Mapping[str, Any],
        **more: Any,
    ) -> Self:
        """Of a run that starts now. `planned`: as `planned_fields`. `more`: the other fields."""
        device = environment["device"]
        return cls(
            attnbench=environment["attnbench"],
            started_utc=datetime.now(UTC).isoformat(timespec="seconds"),
            scenario=scenario.resolved(device),
            own_backends=[name for name in scenario.backends if not is_ours(name)],
            device=device,
            environment=dict(environment),
            **{"calibration": None, **more, **planned},
        )

    @classmethod
    def stored(cls, meta: Document) -> Self:
        """From run.json, which may have fields of other versions too.

        Raises ValueError, KeyError or TypeError if it lacks something that measuring needs.
        """
        try:
            spec = cls(**{name: meta[name] for name in cls.model_fields if name in meta})
        except ValidationError as error:
            raise ValueError(fault(error)) from None
        try:
            spec.how  # noqa: B018 - is checked when it is asked for
        except ValidationError as error:
            raise ValueError(f"scenario.{fault(error)}") from None
        spec.units()
        return spec

    def document(self) -> Document:
        """As in run.json."""
        return self.model_dump(exclude_unset=True)

    def units(self, but: Collection[str] = ()) -> Units:
        """What is planned, without these ids."""
        cases, walls, studies = (
            [one for one in getattr(self, kind) if one["case"] not in but] for kind in PLANNED
        )
        return Units(groups_of(cases), tuple(map(wall_of, walls)), tuple(map(study_of, studies)))

    # ---- how cases are measured ------------------------------------------------------------------

    @cached_property
    def how(self) -> HowToMeasure:
        return HowToMeasure.model_validate(self.scenario)

    @property
    def wall_budget_s(self) -> float | None:
        """A shard's walls get what they get in one run."""
        budget_s = self.how.limits.wall_budget_s
        elsewhere = len(self.shard.elsewhere["walls"]) if self.shard else 0
        if budget_s is None or not elsewhere:
            return budget_s
        return budget_s * len(self.walls) / (len(self.walls) + elsewhere)

    @property
    def peaks(self) -> Mapping[str, float] | None:
        """What calibration measured on this machine."""
        return (self.calibration or {}).get("peaks")

    @property
    def physical_device(self) -> Device:
        """What limits every latency."""
        return Device(self.device, self.environment.get("device_name"), self.peaks)

    @property
    def windows(self) -> int:
        """How many windows a watched case gets in each way of launching."""
        shared = set(self.how.measure).intersection(measures(own_calls=False))
        return self.how.plan.windows if shared else 0

    @property
    def profiles(self) -> bool:
        return bool(set(self.how.measure).intersection(measures(own_calls=True)))

    @property
    def launch_modes(self) -> tuple[Literal["eager", "graph"], ...]:
        graphs = "graphs" in self.how.measure and self.device == "cuda"
        return ("eager", "graph") if graphs else ("eager",)

    def watches(self, problem: Problem) -> bool:
        """Whether the device's counters are read on this problem."""
        return bool(set(measures()) & set(self.how.measure)) and all(
            getattr(problem, axis) in values for axis, values in self.how.watch.items()
        )

    def without_windows(self, problem: Problem) -> dict[str, str]:
        """Why a case that was timed on a GPU has no window of its counters; {} on a CPU."""
        if self.device != "cuda" or "latency" not in self.how.measure:
            return {}
        if not self.windows:
            why = f"measure is {', '.join(self.how.measure)}"
        elif not self.watches(problem):
            why = "the scenario's watch leaves this problem out"
        else:
            why = "the worker took none"
        return {"windows": f"no window: {why}"}


def planned_fields(selected: Units, shard: Shard | None) -> dict[str, Any]:
    """`cases`, `walls` and `studies`; in a shard also `shard`, with those of the other shards.

    In a shard each wall and study has its `place` in the whole plan; cases have their `group`.
    """
    whole = selected.whole or selected
    plan = {
        "cases": [
            {"group": group.number, **case.fields()}
            for group in whole.groups
            for case in group.cases
        ],
        "walls": [wall.fields() for wall in whole.walls],
        "studies": [study.fields() for study in whole.studies],
    }
    if shard is None:
        return plan
    for name in ("walls", "studies"):
        plan[name] = [{"place": place, **one} for place, one in enumerate(plan[name])]
    own = set(selected.ids)
    elsewhere = {
        name: [one for one in planned if one["case"] not in own] for name, planned in plan.items()
    }
    return {
        **{name: [one for one in planned if one["case"] in own] for name, planned in plan.items()},
        "shard": {"number": shard.number, "of": shard.of, "elsewhere": elsewhere},
    }
