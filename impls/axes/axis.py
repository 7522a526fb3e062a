"""What is said of an axis of a problem: its name in scenarios and on the command line, in ids, in
rows and in sentences.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What is said of a field of Problem, beside its type and its default.

    `meaning`: for scenario files. `alias`: a shorter name there. `option`: the help of its command-
    line option; without one it is set in a scenario file only. `given`: the value if nothing sets
    it. `scenario_wide`: a scenario may also set it at its top level, for the whole grid.
    `part`: what it adds to the id of a case, "" for nothing; lengths are added by cases and walls.
    `symbol`: of a size, for people; `text`: what to say of a value of another axis, "" for nothing.
    `usual`: the value that follows from the other axes and is not said, `usual_text` its name.
    `goes_with`: the axis that it is a detail of. `in_rows`: its line in docs/format.md; without one
    it shares that of the next axis. `opt_in`: a backend computes other values than the default only
    if its file has the name in COMPUTES. `earliest`: the value in rows that lack it. `type`: of a
    value that is given, filled in below.
    """

    meaning: str
    alias: str = ""
    option: str = ""
    given: Any = None
    scenario_wide: bool = False
    part: Callable[["Problem"], str] = lambda problem: ""
    symbol: str = ""
    text: Callable[[Any], str] = str
    usual: Callable[[Mapping[str, Any]], Any] | None = None
    usual_text: str = ""
    goes_with: str = ""
    in_rows: str = ""
    opt_in: bool = False
    earliest: Any = None
    type: Any = None

    @property
    def description(self) -> str:
        return f"{self.meaning} Also written {self.alias}." if self.alias else self.meaning


def axis(meaning: str, *, default: Any = MISSING, **more: Any) -> Any:
    """A field of Problem with its Axis."""
    return field(default=default, metadata={"axis": Axis(meaning=meaning, **more)})
