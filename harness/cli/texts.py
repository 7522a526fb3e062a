"""What options say in words: as fields of a scenario, or why they cannot be meant."""

import re
from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, get_args

from ...impls.problem import AXES
from ..files.errors import BadInput, option, shown
from ..verbs.completion import backend_names
from .options import Device

if TYPE_CHECKING:
    from ..scenario import Change

MOST_TOLERANCE_RATIO = 0.5
SIZE = re.compile(r"[0-9]+[kKmM]?")


def as_changes(
    device: Device | None,
    timeout: float | None,
    memory_gib: float | None,
    plan: str | None = None,
    measure: str | None = None,
) -> "list[Change]":
    """Options that set a field of a scenario."""
    from ..scenario import Change

    given = {
        "device": ("device", device or None),
        "limits.timeout_s": ("timeout", timeout),
        "limits.memory_gib": ("memory_gib", memory_gib),
        "plan": ("plan", plan or None),
        "measure": ("measure", measure),
    }
    return [
        Change(path, _field(path, value), option(name, _plain(value)))
        for path, (name, value) in given.items()
        if value is not None
    ]


def _field(path: str, value: object) -> object:
    return [one.strip() for one in str(value).split(",")] if path == "measure" else value


def _plain(value: object) -> str:
    """As it was typed: 2 and not 2.0."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def ratio_of(tolerance: str) -> float:
    """From a percentage. Raises BadInput."""
    number = tolerance.strip().removesuffix("%").strip()
    try:
        ratio = float(number) / 100
    except ValueError:
        ratio = nan
    if not 0 < ratio <= MOST_TOLERANCE_RATIO:
        raise BadInput(
            f"--tolerance {shown(tolerance)}: wanted a percentage above 0 and up to"
            f" {100 * MOST_TOLERANCE_RATIO:.0f} %, such as 1%"
        )
    return ratio


def separated(words: Sequence[str], arguments: Sequence[str]) -> str:
    """What to say of values that follow an option with spaces between them; "" if none do.

    `words`: what stands where no option does. `arguments`: of the program, as given.
    """
    place = arguments.index(words[0]) if words[0] in arguments else 0
    options = [at for at in range(place) if arguments[at].startswith("--")]
    option, equals, first = arguments[options[-1]].partition("=") if options else ("", "", "")
    name = option.removeprefix("--").replace("-", "_")
    if name != "backends" and not (name in AXES and AXES[name].option):
        return ""
    offered = backend_names() if name == "backends" else get_args(AXES[name].type)
    parts = [part for word in words for part in word.split(",") if part]
    if not all(part in offered or SIZE.fullmatch(part) for part in parts):
        return ""
    before = [*([first] if equals else []), *arguments[options[-1] + 1 : place]]
    joined = ",".join(word.strip(",") for word in [*before, *words])
    return f"{option}: values are separated by commas; wanted {option} {joined}"
