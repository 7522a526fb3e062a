"""What can be wrong between the fields of a scenario: each finding is a line with the place of the
value to mend.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...impls import Problem, names
from ...impls.discovery.names import ALIASES, attribute_from_name
from ..errors import shown
from ..studies import names as study_names
from .grid import AXES, NEEDED, AxisValues, Values, case_values, combinations, measured
from .messages import first_lines, suggestion
from .yaml_document import Document, Keys

if TYPE_CHECKING:
    from . import Scenario


def problems_of(scenario: "Scenario", document: Document) -> list[str]:
    """All findings, each once; combinations are looked at only where there are not too many."""
    found = list(dict.fromkeys(_between_fields(scenario, document)))
    if not found:
        found = list(
            dict.fromkeys(
                line
                for device in scenario.devices
                for line in _combinations(scenario, device, document)
            )
        )
    return first_lines(found)


def _between_fields(scenario: "Scenario", document: Document) -> Iterator[str]:
    known = names()
    for index, backend in enumerate(scenario.backends):
        if backend not in known and attribute_from_name(backend) is None:
            place, name, hint = (
                document.place(("backends", index)),
                document.name(("backends", index)),
                suggestion(backend, (*known, *ALIASES)),
            )
            yield (
                f"{place}: {name}: no backend {shown(backend)}; {hint}there are: {', '.join(known)}"
            )
    every = study_names()
    for index, study in enumerate(scenario.studies):
        if study not in every:
            keys = ("studies", index)
            hint = suggestion(study, every)
            yield (
                f"{document.place(keys)}: {document.name(keys)}: no study {shown(study)};"
                f" {hint}there are: {', '.join(every)}"
            )
    if scenario.baseline is not None and scenario.baseline not in scenario.backends:
        place, backends = document.place(("baseline",)), ", ".join(scenario.backends)
        hint = suggestion(scenario.baseline, scenario.backends)
        yield (
            f"{place}: baseline: found {shown(scenario.baseline)}; {hint}wanted one of backends:"
            f" {backends}"
        )
    for field in ("backends", "contrast", "measure", "studies"):
        values = getattr(scenario, field)
        for index, value in enumerate(values):
            if value in values[:index]:
                yield (
                    f"{document.place((field, index))}: {document.name((field, index))}: {value} is"
                    " given twice; remove one"
                )
    yield from _lacking(scenario, document)
    yield from _watching(scenario, document)
    device = max(scenario.devices, key=scenario.count)
    count, most = scenario.count(device), scenario.limits.max_cases
    if count > most:
        yield (
            f"{document.place(('grid',), of_key=True)}: grid: {count} cases on {device}; wanted at"
            f" most {most}; give fewer values, or raise the limit with --set"
            f" limits.max_cases={count}"
        )


def _lacking(scenario: "Scenario", document: Document) -> Iterator[str]:
    """Axes that a grid needs. A grid of single values beside explicit cases may lack them: it only
    gives values to these.
    """
    needing = {
        device: axes
        for device in scenario.devices
        if not measured(axes := scenario.axes(device))
        and (not scenario.cases or any(len(values) > 1 for values in axes.values()))
    }
    wanted: tuple[str, ...] = NEEDED
    if (
        scenario.find_wall
    ):  # the grid is then needed in any case, but for the length that is looked for
        needing = {device: scenario.axes(device) for device in scenario.devices}
        wanted = tuple(axis for axis in NEEDED if axis != "seq_len")
    for axis in wanted:
        lacking = [device for device, axes in needing.items() if axis not in axes]
        if lacking:
            where = f" for {lacking[0]}" if len(lacking) < len(scenario.devices) else ""
            yield (
                f"{document.place(('grid', axis))}: grid.{axis}: missing{where}; wanted"
                f" {list_text(wanted)}; add {axis}"
            )


def _watching(scenario: "Scenario", document: Document) -> Iterator[str]:
    """What is to be watched and never is: values that no problem has, and ways to watch without
    anything to watch.
    """
    if "graphs" in scenario.measure and not {"utilization", "energy"} & set(scenario.measure):
        place = document.place(("measure",))
        yield (
            f"{place}: measure: graphs says how utilization and energy are measured, and neither"
            " is; add one of them"
        )
    for axis, values in scenario.watched().items():
        offered = dict.fromkeys(
            value
            for device in scenario.devices
            for value in (
                *scenario.axes(device).get(axis, ()),
                *(own[axis] for _, own in scenario.extra_cases(device) if axis in own),
            )
        )
        for index, value in enumerate(values):
            if value not in offered:
                keys = ("watch", axis, index)
                hint = (
                    f"wanted one of {', '.join(map(str, offered))}"
                    if offered
                    else f"the scenario leaves {axis} at its usual value"
                )
                yield (
                    f"{document.place(keys)}: {document.name(keys)}: no problem has {axis} {value};"
                    f" {hint}; change or remove it"
                )


def _combinations(scenario: "Scenario", device: str, document: Document) -> Iterator[str]:
    """Combinations that are no problem, one line per reason."""
    axes = scenario.axes(device)
    reasons: dict[str, Values] = {}
    for group in combinations(axes, scenario.contrast):
        for values in group:
            if reason := _reason(values):
                reasons.setdefault(reason, values)
    given = axes
    if not reasons:
        given = {
            axis: values for axis, values in axes.items() if axis != "seq_len"
        }  # a wall's length is nobody's mistake
        reasons = {
            reason: values
            for values in scenario.wall_values(device)
            if (reason := _wall_reason(values))
        }
    for reason, values in reasons.items():
        keys = _blamed(reason, values, given, device, document)
        yield f"{document.place(keys)}: {document.name(keys)}: {reason}"
    for index, own in scenario.extra_cases(device):
        try:
            reason = _reason(case_values(own, axes))
        except ValueError as error:
            reason = str(error)
        if reason:
            named = [axis for axis in own if _names(reason, axis)]
            keys = ("cases", index, *named[-1:])
            yield f"{document.place(keys)}: {document.name(keys)}: {reason}"


def list_text(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _reason(values: Values) -> str:
    """Why these values are no problem; "" where they are one."""
    try:
        Problem(**values)
    except ValueError as error:
        return str(error)
    return ""


def _wall_reason(values: Values) -> str:
    if values.get("mask") == "strided" and "window" not in values:
        return "mask strided takes its window from the length, which a wall looks for; give window"
    return _reason(values)


def _names(reason: str, axis: str) -> bool:
    return re.search(rf"\b{axis}\b", reason) is not None


def _blamed(reason: str, values: Values, axes: AxisValues, device: str, document: Document) -> Keys:
    """The value to point at: of the axes that the reason names, the one with most values, and the
    later of equals.
    """
    named = [axis for axis in AXES if axis in axes and _names(reason, axis)]
    if not named:
        return ("grid",)
    axis = max(named, key=lambda name: (len(axes[name]), AXES.index(name)))
    index = axes[axis].index(values[axis]) if axis in values else 0
    grid = document.data.get("grid", {})
    if axis in (grid.get(device) or {}):
        return ("grid", device, axis, index)
    return ("grid", axis, index) if axis in grid else (axis,)
