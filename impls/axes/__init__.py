"""Axes of a problem: what is said of each, in files of this folder, found by their names. Importing
them imports no torch.
"""

from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from ..problem_fields import ProblemFields
from .axis import Axis

_NAMES = [path.stem for path in Path(__file__).parent.glob("[!_]*.py")]
DECLARED: dict[str, Axis] = {
    name.lower(): one
    for file in _NAMES
    for name, one in vars(import_module(f".{file}", __name__)).items()
    if isinstance(one, Axis)
}
"""Each Axis of a file, in capitals there, under the name of its field."""
_TYPES = get_type_hints(ProblemFields)


def _assembled(name: str, default: Any) -> Axis:
    """The axis with what its field says: the type, without the value of one left out."""
    axis, words = DECLARED[name], tuple(word for word in get_args(_TYPES[name]) if word)
    kind = axis.type or (Literal[words] if words else _TYPES[name])
    earliest = default if axis.opt_in else axis.earliest
    return replace(axis, type=kind, words=get_args(kind), default=default, earliest=earliest)


AXES: dict[str, Axis] = {
    one.name: _assembled(one.name, one.default) for one in fields(ProblemFields)
}
"""By name, in the order of the fields, in which cases are planned."""
OPT_IN: dict[str, Any] = {name: axis.default for name, axis in AXES.items() if axis.opt_in}
"""Axes that only some backends compute, with the value that all do."""
