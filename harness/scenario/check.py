"""Check how the fields of a scenario fit together; every problem names the value to change."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...impls import Problem
from ..files.errors import shown
from ..probes import shared_measures
from ..studies import declared
from .document import Document, Keys
from .fields import suggestion
from .messages import first_lines, position
from .model import (
    ORDER,
    REQUIRED,
    AxisValues,
    Scenario,
    Values,
    case_values,
    combinations,
    is_complete,
)


class Finding(NamedTuple):
    """One problem, and the field to change."""

    keys: Keys
    text: str
    at_key: bool = False

    def line(self, document: Document) -> str:
        return f"{document.label(self.keys, of_key=self.at_key)}{self.text}"


def problems_of(scenario: Scenario, document: Document) -> list[str]:
    """All findings, each once; combinations are checked only if there are not too many."""
    found = [*_between_fields(scenario)] or [
        finding
        for device in scenario.devices
        for finding in (*_combinations(scenario, device, document), *_cases(scenario, device))
    ]
    told = dict.fromkeys(finding.line(document) for finding in found)
    return first_lines(sorted(told, key=position))


def _between_fields(scenario: Scenario) -> Iterator[Finding]:
    if scenario.save_models and not any(
        declared(study.partition(":")[0]).saves_models for study in scenario.studies
    ):
        yield Finding(
            ("save_models",),
            "no study here trains models; add studies: [trained_heads], or remove save_models",
        )
    if scenario.baseline is not None and scenario.baseline not in scenario.backends:
        hint = suggestion(scenario.baseline, scenario.backends)
        yield Finding(
            ("baseline",),
            f"found {shown(scenario.baseline)}; {hint}wanted one of backends:"
            f" {', '.join(scenario.backends)}",
        )
    for field in ("backends", "contrast", "measure", "studies"):
        values = getattr(scenario, field)
        for index, value in enumerate(values):
            if value in values[:index]:
                yield Finding((field, index), f"{value} is given twice; remove one")
    yield from _missing_axes(scenario)
    yield from _measure_and_watch(scenario)
    device = max(scenario.devices, key=scenario.count)
    count, most = scenario.count(device), scenario.limits.max_cases
    if count > most:
        yield Finding(
            ("grid",),
            f"{count} cases on {device}; wanted at most {most}; give fewer values, or raise the"
            f" limit with --set limits.max_cases={count}",
            at_key=True,
        )


def _missing_axes(scenario: Scenario) -> Iterator[Finding]:
    """Axes that a grid needs.

    A grid of single values may lack them beside explicit cases, to which it only gives values.
    """
    grids = {device: scenario.axes(device) for device in scenario.devices}
    required = [axis for axis in REQUIRED if axis != "seq_len" or not scenario.find_wall]
    if not scenario.find_wall:
        grids = {
            device: axes
            for device, axes in grids.items()
            if not is_complete(axes)
            and (not scenario.cases or any(len(values) > 1 for values in axes.values()))
        }
    for axis in required:
        lacking = [device for device, axes in grids.items() if axis not in axes]
        if lacking:
            where = f" for {lacking[0]}" if len(lacking) < len(scenario.devices) else ""
            wanted = f"{', '.join(required[:-1])} and {required[-1]}"
            yield Finding(("grid", axis), f"missing{where}; wanted {wanted}; add {axis}")


def _measure_and_watch(scenario: Scenario) -> Iterator[Finding]:
    """`graphs` without any windows, and watched values that no problem has."""
    if "graphs" in scenario.measure and not {*shared_measures()} & {*scenario.measure}:
        windows = " or ".join(shared_measures())
        yield Finding(("measure",), f"graphs needs the windows of {windows}; add one of them")
    for axis, values in scenario.watched().items():
        offered = dict.fromkeys(
            value
            for device in scenario.devices
            for value in (
                *scenario.axes(device).get(axis, ()),
                *(own[axis] for _, own in scenario.extra_cases(device) if axis in own),
            )
        )
        hint = (
            f"wanted one of {', '.join(map(str, offered))}"
            if offered
            else f"the scenario leaves {axis} at its default"
        )
        for index, value in enumerate(values):
            if value not in offered:
                yield Finding(
                    ("watch", axis, index),
                    f"no problem has {axis} {value}; {hint}; change or remove it",
                )


def _combinations(scenario: Scenario, device: str, document: Document) -> Iterator[Finding]:
    """Combinations of the grid that are no problem, one finding per reason."""
    axes = scenario.axes(device)
    groups = combinations(axes, scenario.contrast)
    reasons = _reasons((_reason(values), values) for group in groups for values in group)
    if not reasons:
        walls = scenario.wall_values(device)
        reasons = _reasons((_wall_reason(values), values) for values in walls)
        axes = {axis: values for axis, values in axes.items() if axis != "seq_len"}
    for reason, values in reasons.items():
        yield Finding(_keys_to_change(reason, values, axes, device, document), reason)


def _cases(scenario: Scenario, device: str) -> Iterator[Finding]:
    """Explicit cases that are no problem."""
    for index, own in scenario.extra_cases(device):
        try:
            reason = _reason(case_values(own, scenario.axes(device)))
        except ValueError as error:
            reason = str(error)
        if reason:
            named = [axis for axis in own if _names(reason, axis)]
            yield Finding(("cases", index, *named[-1:]), reason)


def _reasons(found: Iterable[tuple[str, Values]]) -> dict[str, Values]:
    """Each reason with the first values that it applies to."""
    reasons: dict[str, Values] = {}
    for reason, values in found:
        if reason:
            reasons.setdefault(reason, values)
    return reasons


def _reason(values: Values) -> str:
    """Why these values are no problem; "" if they are one."""
    try:
        Problem(**values)
    except ValueError as error:
        return str(error)
    return ""


def _wall_reason(values: Values) -> str:
    if values.get("mask") == "strided" and "window" not in values:
        return (
            "the window of mask strided depends on the length, which a wall searches; give window"
        )
    return _reason(values)


def _names(reason: str, axis: str) -> bool:
    return re.search(rf"\b{axis}\b", reason) is not None


def _keys_to_change(
    reason: str, values: Values, axes: AxisValues, device: str, document: Document
) -> Keys:
    """Of the axes that the reason names, the one with most values, and the later of equals."""
    named = [axis for axis in ORDER if axis in axes and _names(reason, axis)]
    if not named:
        return ("grid",)
    axis = max(named, key=lambda name: (len(axes[name]), ORDER.index(name)))
    index = axes[axis].index(values[axis]) if axis in values else 0
    grid = document.data.get("grid", {})
    if axis in (grid.get(device) or {}):
        return ("grid", device, axis, index)
    return ("grid", axis, index) if axis in grid else (axis,)
