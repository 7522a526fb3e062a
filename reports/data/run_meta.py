"""Where a number comes from, in one line: device, scenario and problem."""

from collections.abc import Mapping
from typing import Any

from .row_groups import label, unusual

Meta = Mapping[
    str, Mapping[str, Any]
]  # run -> what its run.json says, its walls with what came of them


def caption(problem: Mapping[str, Any], meta: Meta) -> str:
    run = meta[problem["run"]]
    parts = [device_name(run, problem.get("device")), f"scenario {scenario_name(run)}"]
    parts += [str(problem["run"])] if len(meta) > 1 else []
    return " · ".join(
        [
            *parts,
            label(
                {axis: value for axis, value in unusual(dict(problem)).items() if axis != "device"}
            ),
        ]
    )


def device_name(run: Mapping[str, Any], device: Any = None) -> str:
    """The machine's own name for the device where the environment has it, else cpu or cuda."""
    device = device or run["device"]
    name = run["environment"].get("device_name" if device == "cuda" else "cpu")
    return f"{name} ({device})" if isinstance(name, str) and name else str(device)


def device_identity(run: Mapping[str, Any]) -> dict[str, Any]:
    """What must be equal for two numbers to come from one device; a fact that is not known is left
    out.
    """
    names = ("device_name", "device_uuid") if run["device"] == "cuda" else ("cpu",)
    known = {name: run["environment"].get(name) for name in names}
    return {
        "device": run["device"],
        **{name: value for name, value in known.items() if value is not None},
    }


def scenario_name(run: Mapping[str, Any]) -> str:
    return str(run["scenario"].get("name") or "without a name")


def question(run: Mapping[str, Any]) -> str:
    return str(run["scenario"].get("question") or "").strip()


def budget_bytes(run: Mapping[str, Any]) -> float | None:
    budget = run.get("memory_bytes")
    return budget if isinstance(budget, int) and budget > 0 else None
