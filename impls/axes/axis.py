"""What is said of an axis of a problem: its name in scenarios and on the command line, in ids, in
rows and in sentences; which values it has; and what it means to the reference and to costs.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from ..problem_fields import ProblemFields

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Axis:
    """What is said of a field of Problem.

    `meaning`: for scenario files. `alias`: a shorter name there. `option`: the help of its command-
    line option; without one it is set in a scenario file only. `given`: the value if nothing sets
    it. `scenario_wide`: a scenario may also set it at its top level, for the whole grid.
    `part`: what it adds to the id of a case, "" for nothing; lengths are added by cases and walls.
    `symbol`: of a size, for people; `text`: what to say of a value of another axis, "" for nothing.
    `usual`: the value that follows from the other axes and is not said, `usual_text` its name.
    `goes_with`: the axis that it is a detail of. `in_rows`: its line in docs/format.md; without one
    it shares that of the next axis. `opt_in`: a backend computes other values than the default only
    if its file has the name in COMPUTES. `earliest`: the value in rows that lack it; the default of
    an axis that is `opt_in`.

    `valid`: whether a value is one, and `wanted` what is; types say it of words and whole numbers,
    of which 0 is one if it is the default of an axis that is `opt_in` or `filled`. `check` raises
    ValueError for a value that does not go with the others of a problem. `filled`: the value that
    is stored, of a problem that passed and whose earlier fields are filled.
    `tensors`: inputs beside query, key and value (`Inputs.more`), with their shapes, of values
    other than the default. `scores(problem, s)`: what such values make of the scaled scores s,
    before the mask, in torch's operations, none in place; the reference asks it, backends do not.
    `pair_exps`: exponentials, or tanh, that they add in each head for a pair that the mask keeps;
    `query_exps`: for a query that sees a key.

    `type` and `default` are those of the field, `words` the values of a type that lists them
    (__init__.py sets all three).
    """

    meaning: str
    _: KW_ONLY
    alias: str = ""
    option: str = ""
    given: Any = None
    scenario_wide: bool = False
    part: Callable[[ProblemFields], str] = lambda problem: ""
    symbol: str = ""
    text: Callable[[Any], str] = str
    usual: Callable[[Mapping[str, Any]], Any] | None = None
    usual_text: str = ""
    goes_with: str = ""
    in_rows: str = ""
    opt_in: bool = False
    earliest: Any = None
    valid: Callable[[Any], bool] | None = None
    wanted: str = ""
    check: Callable[[ProblemFields], None] | None = None
    filled: Callable[[ProblemFields], Any] | None = None
    tensors: Callable[[ProblemFields], Mapping[str, tuple[int, ...]]] = lambda problem: {}
    scores: "Callable[[ProblemFields, Tensor], Tensor] | None" = None
    pair_exps: int = 0
    query_exps: int = 0
    type: Any = None
    words: tuple[str, ...] = ()
    default: Any = None

    @property
    def description(self) -> str:
        return f"{self.meaning} Also written {self.alias}." if self.alias else self.meaning

    def check_value(self, name: str, value: Any) -> None:
        """Raises ValueError for a value that is none in any problem."""
        if self.words and value not in self.words and value != self.default:
            raise ValueError(f"{name} is {value!r}; wanted one of: {', '.join(self.words)}")
        least = 0 if self.opt_in or self.filled else 1
        if (self.type is int and value < least) or (self.valid and not self.valid(value)):
            usual = (
                "1 or more, or nothing for the usual value" if self.filled else f"{least} or more"
            )
            raise ValueError(f"{name} is {value}; wanted {self.wanted or usual}")
