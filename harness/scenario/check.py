"""What is wrong with a scenario, in lines for the user: place, field, what was found and wanted.

First pydantic's errors, then how fields fit together; every problem names the value to change.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain
from typing import Any

from pydantic import BaseModel, ValidationError

from ...impls import Problem
from ..cases.case import ALIASES
from ..devices.probes import measures
from ..files.errors import BadInput, option, shown, suggestion
from . import model
from .document import Document, Keys, option_in, value_at
from .fields import Axes, ExtraCase, Grid, Limits, Model, Plan
from .model import Scenario

MODELS: dict[Keys, type[BaseModel]] = {
    ("grid",): Grid,
    ("grid", "cpu"): Axes,
    ("grid", "cuda"): Axes,
    ("watch",): Axes,
    ("cases",): ExtraCase,
    ("plan",): Plan,
    ("limits",): Limits,
}
WANTED = {
    "bool_type": "true or false",
    "string_type": "text",
    "string_unicode": "valid text",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_type": "a whole number",
    "tuple_type": "a list",
    "dict_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "model_type": "a mapping of fields",
}
SEVERAL = re.compile(r"[\w.+-]{1,20}(\s*,\s*[\w.+-]{1,20}){1,20}")
MOST_LINES = 20
UNKNOWN = "extra_forbidden"  # as pydantic says of a field


def checked(
    of_type: type[Model], data: Any, document: Document, keys: Keys = (), of: str = "a scenario"
) -> Model:
    """What a document has at `keys`, as a model. Raises BadInput, a line for each mistake.

    `of`: what the fields are fields of.
    """
    found: list[dict[str, Any]]
    try:
        return of_type.model_validate(data)
    except ValidationError as error:
        # Pydantic also calls a list too short if everything in it was refused.
        found = [
            {**one, "loc": (*keys, *one["loc"])}
            for one in error.errors(include_url=False)
            if one["type"] != "too_short" or not one["input"]
        ]
    found.sort(key=lambda one: position(document.place(one["loc"], of_key=one["type"] == UNKNOWN)))
    # A misspelt required field is one mistake, not two.
    missing = {one["loc"] for one in found if one["type"] == "missing"}
    unknown = [one["loc"] for one in found if one["type"] == UNKNOWN]
    misspelt = missing & {meant(keys, of_type) for keys in unknown[:MOST_LINES] if missing}
    found = [one for one in found if one["type"] != "missing" or one["loc"] not in misspelt]
    # Only what is shown is worded: looking for a close name takes a third of a millisecond.
    lines = [line(one, document, of_type, of) for one in found[:MOST_LINES]]
    raise BadInput(*first_lines(lines, len(found)))


def first_lines(found: Sequence[str], count: int = 0) -> list[str]:
    """The first MOST_LINES. `count`: how many there are if not all are in `found`."""
    more = max(count, len(found)) - MOST_LINES
    return [*found[:MOST_LINES], *([f"and {more} more; fix these first"] if more > 0 else [])]


def position(text: str) -> tuple[int, int]:
    """Line and column of the file:line:col that a text begins with; else (0, 0)."""
    match = re.match(r".*?:(\d+):(\d+)(?=:|$)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def line(error: Mapping[str, Any], document: Document, top: type[BaseModel], of: str) -> str:
    keys, value = error["loc"], error["input"]
    label = document.label(keys)
    match error["type"]:
        case "extra_forbidden":
            return unknown_field(keys, document, top, of)
        case "missing":
            field = model_at(keys[:-1], top).model_fields[str(keys[-1])]
            said = " ".join((field.description or "a value").split())
            # an option is named already
            add = "" if option_in(label) else f" Add {document.name(keys)}"
            return f"{label}missing; wanted: {said[0].lower()}{said[1:]}{add}"
        case "too_short":
            return f"{label}found an empty list; wanted at least one value"
        case "whole_message":
            return f"{label}{error['msg']}"
    # an axis of a file that is written like an option
    several = isinstance(value, str) and SEVERAL.fullmatch(value) and keys[0] == "grid"
    brackets = f"; several values have brackets: [{value}]" if several else ""
    return f"{label}found {shown(value)}; {wanted(error)}{brackets}"


def wanted(error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "literal_error":
        *others, last = expected = re.findall(r"'([^']*)'", context["expected"])
        return f"{suggestion(error['input'], expected)}wanted {', '.join(others)} or {last}"
    if kind in ("wanted", "value_error"):
        return f"wanted {error['msg']}"
    if kind in ("too_long", "string_too_long"):
        of = "of them" if kind == "too_long" else "characters"
        return f"wanted at most {context['max_length']} {of}"
    return f"wanted {WANTED.get(kind) or error['msg'].replace('Input should be ', 'a number ')}"


def unknown_field(keys: Keys, document: Document, top: type[BaseModel], of: str) -> str:
    label, known = document.label(keys, of_key=True), model_at(keys[:-1], top).model_fields
    if (full := ALIASES.get(str(keys[-1]))) in known:
        return f"{label}the same axis as {full}; wanted it once; remove one"
    owner = document.name(keys[:-1])
    close = ".".join(map(str, (*filter(None, [owner]), *meant(keys, top)[len(keys) - 1 :])))
    hint = f"did you mean {close}?" if close != owner else f"there are: {', '.join(known)}"
    return f"{label}not a field of {of}; {hint}"


def meant(keys: Keys, top: type[BaseModel]) -> Keys:
    """The existing field that an unknown one resembles most, or () if none is close.

    At the top: also one of grid, limits and plan, by its own name.
    """
    *above, last = keys
    name = ALIASES.get(str(last), str(last))
    for holder in ("grid", "limits", "plan") if not above else ():
        if name in MODELS[(holder,)].model_fields:
            return (holder, name)
    known = model_at(keys[:-1], top).model_fields
    names = [*known, *(ALIASES if "heads" in known else ())]
    close = get_close_matches(str(last), names, n=1)
    return (*above, close[0]) if close else ()


def model_at(keys: Keys, top: type[BaseModel]) -> type[BaseModel]:
    return MODELS.get(tuple(key for key in keys if isinstance(key, str)), top)


# ---- between fields ------------------------------------------------------------------------------


BESIDE_CASES = (
    "several values beside complete cases, to which a grid gives single values; wanted one value,"
    " or the values in `cases`, or all sizes in the grid"
)


Found = Iterator[tuple[Keys, str]]
"""The fields to change, and what is wrong with them."""


def problems_of(scenario: Scenario, document: Document) -> list[str]:
    """All that is wrong, each once; combinations are checked only if there are not too many."""
    found = [*_between_fields(scenario)] or [*_no_problems(scenario, document)]
    told = dict.fromkeys(
        f"{document.label(keys, of_key=keys == ('grid',))}{text}" for keys, text in found
    )
    return first_lines(sorted(told, key=position))


def _between_fields(scenario: Scenario) -> Found:
    s = scenario
    if s.baseline is not None and s.baseline not in s.backends:
        there_are = f"wanted one of backends: {', '.join(s.backends)}"
        hint = suggestion(s.baseline, s.backends)
        yield ("baseline",), f"found {shown(s.baseline)}; {hint}{there_are}"
    for field in ("backends", "contrast", "measure", "measure_on_cuda", "studies"):
        values = getattr(s, field)
        for index, value in enumerate(values):
            if value in values[:index]:
                yield (field, index), f"{value} is given twice; remove one"
    yield from _missing_axes(s)
    yield from _measure_and_watch(s)
    device = max(s.devices, key=s.count)
    count, most = s.count(device), s.limits.max_cases
    if count > most:
        raised = option("set", f"limits.max_cases={count}")
        yield (
            ("grid",),
            f"{count} cases on {device}; wanted at most {most}; give fewer values, or raise the"
            f" limit with {raised}",
        )


def _missing_axes(scenario: Scenario) -> Found:
    """Axes that a grid needs.

    A grid of single values may lack them beside explicit cases, to which it only gives values.
    """
    walls, lacking, complete = scenario.find_wall, dict[str, list[str]](), False
    several = set[str]()
    for device in scenario.devices:
        axes = scenario.axes(device)
        lists = {axis for axis, values in axes.items() if len(values) > 1}
        missing = model.missing_axes(axes, walls=walls)
        if missing and (walls or lists or not scenario.cases):
            lacking[device] = missing
            several |= lists
        own = (values for _, values in scenario.extra_cases(device))
        complete |= any(not model.missing_axes(values) for values in own)
    if complete and not walls:
        # a whole grid was not meant: what its lists would multiply has no sizes
        yield from ((("grid", axis), BESIDE_CASES) for axis in sorted(several))
        return
    required = [axis for axis in model.REQUIRED if axis != "seq_len" or not walls]
    wanted = f"{', '.join(required[:-1])} and {required[-1]}"
    for axis in required:
        devices = [device for device, missing in lacking.items() if axis in missing]
        where = f" for {devices[0]}" if 0 < len(devices) < len(scenario.devices) else ""
        if devices:
            yield ("grid", axis), f"missing{where}; wanted {wanted}; add {axis}"


def _measure_and_watch(scenario: Scenario) -> Found:
    """`graphs` without any windows, and watched values that no problem has."""
    shared = measures(own_calls=False)
    for field in ("measure", "measure_on_cuda"):
        asked = getattr(scenario, field)
        if "graphs" in asked and not {*shared} & {*asked}:
            windows = " or ".join(shared)
            yield (field,), f"graphs needs the windows of {windows}; add one of them"
    for axis, values in scenario.watched().items():
        offered = [value for one in scenario.devices for value in scenario.axes(one).get(axis, ())]
        offered += [getattr(case, axis) for case in scenario.cases]
        words = ", ".join(map(str, dict.fromkeys(one for one in offered if one is not None)))
        hint = f"wanted one of {words}" if words else f"the scenario leaves {axis} at its default"
        for index, value in enumerate(values):
            if value not in offered:
                text = f"no problem has {axis} {value}; {hint}; change or remove it"
                yield ("watch", axis, index), text


def _no_problems(scenario: Scenario, document: Document) -> Found:
    """Combinations of the grid, walls and explicit cases that are no problem: for each reason the
    first.
    """
    for device in scenario.devices:
        axes = scenario.axes(device)
        reasons: dict[str, model.Values] = {}
        for values in chain.from_iterable(model.combinations(axes, scenario.contrast)):
            reasons.setdefault(_reason(values), values)
        chosen = dict(axes)
        if not any(reasons):
            chosen.pop("seq_len", None)  # a wall's own
            for values in scenario.wall_values(device):
                reasons.setdefault(_wall_reason(values), values)
        for reason, values in reasons.items():
            if reason:
                yield _keys_to_change(reason, values, chosen, device, document), reason
        for index, own in scenario.extra_cases(device):
            try:
                reason = _reason(model.case_values(own, axes))
            except ValueError as error:
                reason = str(error)
            if reason:
                named = [axis for axis in own if _names(reason, axis)]
                yield ("cases", index, *named[-1:]), reason


def _reason(values: model.Values) -> str:
    """Why these values are no problem; "" if they are one."""
    try:
        Problem(**values)
    except ValueError as error:
        return str(error)
    return ""


def _wall_reason(values: model.Values) -> str:
    if values.get("lengths"):
        return "lengths fix the length, which a wall searches; leave lengths out"
    if values.get("mask") == "strided" and "window" not in values:
        return (
            "the window of mask strided depends on the length, which a wall searches; give window"
        )
    return _reason(values)


def _names(reason: str, axis: str) -> bool:
    return re.search(rf"\b{axis}\b", reason) is not None


def _keys_to_change(
    reason: str, values: model.Values, axes: model.AxisValues, device: str, document: Document
) -> Keys:
    """Of the axes that the reason names, the one with most values, and the later of equals."""
    named = [axis for axis in model.ORDER if axis in axes and _names(reason, axis)]
    if not named:
        return ("grid",)
    axis = max(named, key=lambda name: (len(axes[name]), model.ORDER.index(name)))
    index = axes[axis].index(values[axis]) if axis in values else 0
    for above in (("grid", device), ("grid",)):
        if value_at(document.data, (*above, axis)) is not None:
            return (*above, axis, index)
    return (axis,)
