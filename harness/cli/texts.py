"""What options say in words: as fields of a scenario, or why they cannot be meant."""

import re
from collections.abc import Mapping, Sequence
from math import nan
from typing import get_args

from ..axes import AXES
from ..errors import BadInput, shown
from .completion import backend_names
from .flags import Device

MOST_TOLERANCE_RATIO = 0.5
SIZE = re.compile(r"[0-9]+[kKmM]?")


def given(options: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in options.items() if value is not None}


def as_changes(device: Device | None, timeout: float | None, memory_gib: float | None) -> list[str]:
    """Options that set a field of a scenario, as --set takes them."""
    return [
        *([f"device={device}"] if device else []),
        *([f"limits.timeout_s={timeout}"] if timeout is not None else []),
        *([f"limits.memory_gib={memory_gib}"] if memory_gib is not None else []),
    ]


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
            f" {MOST_TOLERANCE_RATIO:.0%}, such as 1%"
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
    if not all(word in offered or SIZE.fullmatch(word) for word in words):
        return ""
    before = [*([first] if equals else []), *arguments[options[-1] + 1 : place]]
    joined = ",".join([*before, *words])
    return f"{option}: values are separated by commas; wanted {option} {joined}"
