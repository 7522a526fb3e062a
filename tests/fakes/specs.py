"""What a run is measured with, for tests that need no scenario file and no folder."""

from collections.abc import Mapping, Sequence
from typing import Any

from attnbench.harness.run.spec import RunSpec
from attnbench.harness.scenario import Limits, Plan, Scenario
from attnbench.harness.scenario.fields import Axes


def run_spec(
    device: str = "cpu",
    *,
    plan: Plan = Plan(),  # noqa: B008 - frozen
    measure: Sequence[str] = ("latency",),
    watch: Mapping[str, Any] = {},
    memory_bytes: int = 1 << 30,
    baseline: str | None = None,
    **limits: Any,
) -> RunSpec:
    """`limits`: as in a scenario."""
    scenario = Scenario(
        name="fake",
        question="?",
        backends=(baseline or "naive",),
        baseline=baseline,
        plan=plan,
        measure=tuple(measure),
        watch=Axes(**watch),
        limits=Limits(**{"timeout_s": 10.0, **limits}),
    )
    environment = {"device": device, "device_name": None, "attnbench": "0"}
    return RunSpec.new(scenario, {"cases": []}, environment, memory_bytes=memory_bytes, seed=0)
