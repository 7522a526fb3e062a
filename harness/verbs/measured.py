"""What requests share that measure backends on shapes: `run` and `wall`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from ...impls.problem import AXES
from ..files.errors import Spelling, option, shown
from . import completion, fields
from .request import Option, as_typed, refuse

if TYPE_CHECKING:
    from ..run.engine import Engine
    from ..run.suite import SuiteEntry
    from ..scenario import Change

Backends = str | Callable[..., Any] | Sequence[str | Callable[..., Any]]


class Named(NamedTuple):
    """`own`: those that are functions of the user, who permits workers to import their modules by
    giving them; `folders`: from which.
    """

    names: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()
    folders: tuple[str, ...] = ()


BACKENDS = Option(
    "A,B",
    fields.WHAT,
    "Backends, as fused,sdpa; my_module:attend is your own function, which workers import.",
    complete=completion.backends,
    wanted="names of backends, or functions",
)


def axis_option(name: str) -> Option:
    """Of an axis of a problem; one that has no help for it is of scenarios and Python alone."""
    axis = AXES[name]
    return Option(
        "SIZE,SIZE" if axis.type is int else "A,B",
        fields.SHAPE,
        axis.option or axis.meaning,
        complete=completion.values_of(name),
        wanted="a value, or several",
        of=None if axis.option else Spelling.PYTHON,
    )


AXIS_FIELDS: Any = make_dataclass(
    "AxisFields",
    [
        (name, Annotated[bool, axis_option(name)], False)
        if axis.type is bool
        else (name, Annotated[fields.Values | None, axis_option(name)], None)
        for name, axis in AXES.items()
        if name != "seq_len"  # what `wall` searches for
    ],
    bases=(fields.HowMeasured,),
    frozen=True,
    slots=True,
    kw_only=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(AXIS_FIELDS):  # type: ignore[misc] # a field for each axis
    """`json_lines`: what --json means. `changed`: which fields set which of a scenario's."""

    head_dim: Annotated[fields.Values | None, Option("WIDTH", fields.SHAPE, wanted="a width")] = (
        None
    )
    """Width of one head (default: d_model / heads); without --d-model, d_model is heads x WIDTH."""
    backends: Annotated[Backends | None, BACKENDS] = None
    dry_run: Annotated[bool, Option(group=fields.OUTPUT, short="-n", of=Spelling.SHELL)] = False
    """Check scenarios and predict each case's bytes; measure nothing."""
    quiet: fields.Quiet = False
    json: fields.JsonLines = False
    on_row: fields.OnRow = None

    json_lines: ClassVar = True
    changed: ClassVar = {
        "device": "device",
        "plan": "plan",
        "measure": "measure",
        "timeout": "limits.timeout_s",
        "memory_gib": "limits.memory_gib",
        "time_budget": "limits.wall_budget_s",
    }
    on_axes: ClassVar = (*AXES, "head_dim", "model", "phase", "queries", "tp", "against")

    @property
    def named(self) -> Named:
        """The backends. Raises BadInput."""
        return Named() if self.backends is None else named_backends(self.backends)

    @property
    def axes(self) -> dict[str, Any]:
        """Those that are given, by a scenario's names."""
        found = {name: getattr(self, name, None) for name in self.on_axes}
        return {
            {"against": "baseline"}.get(name, name): value
            for name, value in found.items()
            if value is not None and value is not False
        }

    def engine(self) -> "Engine | None":
        """Other devices than this machine's."""
        return None

    def answers(self, run: Path) -> Mapping[str, Any]:
        """What --json says of a run beside how its cases ended."""
        return {}

    def changes(self) -> "list[Change]":
        """Fields of the scenario that are set. Raises BadInput."""
        from ..scenario import Change

        given = {name: getattr(self, name, None) for name in self.changed}
        return [
            Change(self.changed[name], _whole(value), option(name, as_typed(value)))
            for name, value in given.items()
            if value is not None
        ]


def _whole(value: Any) -> Any:
    """2 of 2.0, as messages show it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def may_import(request: Measured, entries: "Sequence[SuiteEntry]") -> bool:
    """Whether workers may import modules: those of functions that the request names, or also those
    of scenarios if that is allowed. Raises BadInput if a scenario names others.
    """
    from ..scenario.selection import refuse_imports

    own = request.named.own
    for one in entries:
        others = [name for name in one.scenario.backends if name not in own]
        refuse_imports(others, allowed=request.allow_import)
    return request.allow_import or bool(own)


# ---- functions as backends --------------------------------------------------------------------


def named_backends(given: Backends) -> Named:
    """Raises BadInput for none, and for a function that a worker cannot import."""
    from ...impls.discovery.names import separated
    from ..scenario.selection import backends_of_option

    names, own, folders = list[str](), set[str](), dict[str, None]()
    for one in [given] if isinstance(given, str) or callable(given) else given:
        if isinstance(one, str):
            text, of_text = backends_of_option(one)
            names += separated(text)
            own |= of_text
        else:
            name = _name_of(one)
            names.append(name)
            own.add(name)
            folders[str(_folder_of(sys.modules[one.__module__]))] = None
    none = f"{option('backends')}: found {shown(given)}; wanted {BACKENDS.wanted}"
    refuse({none: not names})
    return Named(tuple(names), frozenset(own), tuple(folders))


def _name_of(function: Callable[..., Any]) -> str:
    """`attend@my_attention`."""
    module = str(getattr(function, "__module__", ""))
    path = str(getattr(function, "__qualname__", ""))
    at: Any = sys.modules.get(module)
    for part in path.split("."):
        at = getattr(at, part, None)
    name = path.rpartition(".")[2] or type(function).__name__
    whys = {
        "a lambda has no name there": "<lambda>" in path,
        "it is defined in another function": "<locals>" in path,
        "it is defined in a notebook, a script or a shell": module == "__main__",
        "no module has it under its name": at is not function
        or not getattr(sys.modules[module], "__file__", None),
    }
    refuse(
        {
            f"{option('backends')}: {name}: a worker cannot import it, since {why}; write it into a"
            " file, as `def attend(q, k, v, *, causal, scale)` in my_attention.py, and give"
            " my_attention.attend": holds
            for why, holds in whys.items()
        }
    )
    return f"{path}@{module}"


def _folder_of(module: ModuleType) -> Path:
    """From which `import` finds it."""
    file = Path(module.__file__ or "").resolve()
    depth = module.__name__.count(".") + (file.name == "__init__.py")
    return file.parents[depth]
