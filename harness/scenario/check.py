"""Check how the fields of a scenario fit together; every problem names the value to change."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...impls import Problem, names
from ...impls.discovery.names import ALIASES, attribute_from_flag, attribute_from_name
from ...impls.discovery.registry import unknown
from ..files.errors import shown
from ..probes import shared_measures
from ..studies import declared, spellings
from ..studies import names as study_names
from .document import Document, Keys
from .grid import ORDER, REQUIRED, AxisValues, Values, case_values, combinations, is_complete
from .messages import first_lines, in_order, suggestion
from .model import Scenario


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
    return first_lines(in_order(dict.fromkeys(finding.line(document) for finding in found)))


def unknown_backends(document: Document) -> list[str]:
    """Of a document that is no scenario for other reasons: its backends that do not exist."""
    given = document.data.get("backends")
    listed = list(enumerate(given)) if isinstance(given, list) else [(0, given)]
    known = names()
    return [
        finding.line(document)
        for index, name in listed
        if isinstance(name, str) and "[" not in name and name not in ALIASES
        if attribute_from_name(name) is None
        for finding in _unknown("backend", name, known, ("backends", index), ALIASES)
    ]


def _between_fields(scenario: Scenario) -> Iterator[Finding]:
    backends, studies = names(), study_names()
    for index, backend in enumerate(scenario.backends):
        if attribute_from_name(backend) is None:
            if "[" not in backend:
                yield from _unknown("backend", backend, backends, ("backends", index), ALIASES)
            elif why := unknown(backend):
                yield Finding(("backends", index), why)
    for index, study in enumerate(scenario.studies):
        if study not in spellings():
            yield from _unknown("study", study, studies, ("studies", index))
    if scenario.save_models and not any(_trains(study) for study in scenario.studies):
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


def _trains(study: str) -> bool:
    return study in spellings() and declared(study.partition(":")[0]).saves_models


def _unknown(
    what: str, name: str, known: tuple[str, ...], keys: Keys, aliases: Iterable[str] = ()
) -> Iterator[Finding]:
    if name not in known:
        hint = suggestion(name, (*known, *aliases)) or _own_function(what, name, known)
        yield Finding(keys, f"no {what} {shown(name)}; {hint}there are: {', '.join(known)}")


def _own_function(what: str, name: str, known: tuple[str, ...]) -> str:
    """How a function of the user's is named, for a name that looks like one."""
    own = attribute_from_flag(name) if what == "backend" else None
    if own is None or own.module in known:
        return ""
    return f"a function of yours is {own.name} here, or --backend {name} instead; "


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
