"""What run.json must hold for its run to be read."""

from typing import Any

from pydantic import Field

from .fields import Shape, ShapeOfWall
from .kernel_fields import KernelPlan
from .model import LATER_VALUES, check
from .values import Count, Int, Object, Part


class Planned(Part):
    case: str
    python: str | None = None
    replica: Int | None = None
    replica_of: Int | None = None


class PlannedCase(Planned, Shape):
    backend: str


class PlannedWall(Planned, ShapeOfWall):
    backend: str


class PlannedStudy(Planned):
    study: str


class PlannedKernel(Planned, KernelPlan):
    pass


class Environment(Part):
    name: str
    path: str
    environment: Object


class Meta(Part):
    run: str
    device: str
    scenario: Object
    environment: Object
    memory_bytes: Count | None = None
    cases: list[PlannedCase]
    walls: list[PlannedWall] = Field([])
    studies: list[PlannedStudy] = Field([])
    kernels: list[PlannedKernel] = Field([])
    environments: list[Environment] = Field([])


def check_meta(meta: dict[str, Any]) -> None:
    """Fields that the first version did not have get their later values. Raises ValueError."""
    check(meta, Meta)
    for one in (*meta["cases"], *meta.get("walls", ())):
        for name, value in LATER_VALUES.items():
            one.setdefault(name, value)
