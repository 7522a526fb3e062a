"""Arguments of the public functions: refused if of another type than declared, and called by their
own names in messages, where the command line has options.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, formatannotation, signature
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar, get_args

from ..files.errors import BadInput, Refusal, Spelling, instead_of, shown, spelled

P = ParamSpec("P")
R = TypeVar("R")
Device = Literal["auto", "cpu", "cuda"]
Plan = Literal["quick", "standard", "rigorous"]
Models = str | Path | Sequence[str | Path] | Mapping[str, str | Path]
Patterns = str | Sequence[str]
Backends = str | Callable[..., Any] | Sequence[str | Callable[..., Any]]
Sizes = int | str | Sequence[int | str]
Names = str | Sequence[str]
DEFAULT_ROOT = "results"

SWITCHES = re.compile(
    r"--(allow-import|allow-different-devices|beside-weights|fail-on-undecided|force"
    r"|measure|retry-failed|salvage|wait)(?![\w-])"
)
RENAMED = {
    "checkpoint": "checkpoints",
    "runs": "out",
    "timeout": "timeout_s",
    "time-budget": "budget_s",
}
COMMAND = re.compile(r"(`?\battnbench [a-z][^;,)`]*)")
"""What a shell takes stays as it is."""


class Shape(TypedDict, total=False):
    """Axes of a problem but for its length, one value or several of each; docs/api.md."""

    batch: Sizes
    kv_seq_len: Sizes
    lengths: Sizes
    d_model: Sizes
    heads: Sizes
    kv_heads: Sizes
    d_k: Sizes
    d_v: Sizes
    head_dim: int
    dtype: Names
    causal: bool
    causal_align: Names
    mask: Names
    window: Sizes
    softcap: float | Sequence[float]
    sinks: bool
    latent: Sizes
    rope: Sizes
    page: Sizes
    kv_dtype: Names
    prefix: Sizes
    passes: Names
    scope: Names


class Axes(Shape, total=False):
    """What to measure without a scenario."""

    seq_len: Sizes
    model: Names
    phase: Names
    queries: int
    tp: int
    baseline: str


def public(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator. Raises BadInput for an argument of another type."""

    @wraps(function)
    def checked(*arguments: P.args, **named: P.kwargs) -> R:
        _refuse_types(function, arguments, named)
        try:
            return function(*arguments, **named)
        except Refusal as error:
            error.problems = tuple(map(as_argument, error.problems))
            error.args = ("\n".join(error.problems),)
            raise

    return checked


def _refuse_types(
    function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]
) -> None:
    from pydantic import ValidationError

    parameters = signature(function)
    problems = []
    for name, value in parameters.bind(*arguments, **named).arguments.items():
        one = parameters.parameters[name]
        if one.kind is Parameter.VAR_KEYWORD:
            (shapes,) = get_args(one.annotation)
            refuse_unknown(value, shapes.__annotations__, [*parameters.parameters])
        elif one.annotation is not Parameter.empty and not isinstance(one.annotation, str):
            try:
                _adapter(one.annotation).validate_python(value)
            except ValidationError:
                wanted = re.sub(r"\b[\w.]+\.(?=\w)", "", formatannotation(one.annotation))
                wanted = re.sub(r"^Optional\[(.*)\]$", r"\1 | None", wanted)
                help_ = f"help(attnbench.{function.__qualname__})"
                problems.append(f"{name}: found {shown(value)}; wanted {wanted}; see {help_}")
    if problems:
        raise BadInput(*problems)


@cache
def _adapter(annotation: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    config = ConfigDict(strict=True, arbitrary_types_allowed=True)
    return TypeAdapter(annotation, config=config)


def refuse_unknown(given: Iterable[str], axes: Iterable[str], others: Sequence[str]) -> None:
    """Raises BadInput for an argument that there is not."""
    known = [*others[:-1], *axes]
    for name in given:
        if name not in known:
            raise BadInput(f"{name}: no such argument; {instead_of(name, known)}")


def as_argument(problem: str) -> str:
    """A message in Python's words; commands for a shell stay."""
    problem = spelled(problem, Spelling.PYTHON)
    if again := re.findall(r"--checkpoint (\S+)=PATH", problem):
        wanted = ", ".join(f"{name!r}: PATH" for name in again)
        problem = problem.partition("--checkpoint ")[0] + f"checkpoints={{{wanted}}}"
    problem = problem.replace("give NAME=PATH", "give {NAME: PATH}")
    problem = re.sub(r"^(--set |--resume: |command line: )", "", problem)
    parts = COMMAND.split(problem)
    parts[::2] = map(_translated, parts[::2])
    return "".join(parts)


def _translated(text: str) -> str:
    text = re.sub(r"--set ([\w.]+)=([^\s;,]+)", r'changes={"\1": \2}', text)
    text = SWITCHES.sub(lambda found: f"{_argument(found[1])}=True", text)
    text = re.sub(
        r"^--([a-z][a-z-]*) ('[^']*'|\S+): ",
        lambda found: f"{_argument(found[1])}: {found[2]}: ",
        text,
    )
    text = re.sub(
        r"(?<![\w-])--([a-z][a-z-]*) ([a-z0-9][\w./]*)(?=[;,)]|$)",
        lambda found: f"{_argument(found[1])}={_literal(found[2])}",
        text,
    )
    return re.sub(r"(?<![\w-])--([a-z][a-z-]*)", lambda found: _argument(found[1]), text)


def _literal(text: str) -> str:
    return text if text.isdecimal() else f'"{text}"'


def _argument(option: str) -> str:
    return RENAMED.get(option, option.replace("-", "_"))


# ---- values as the command line has them ---------------------------------------------------------


def several(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def text_of(value: object) -> str | bool:
    """`512,1k` of [512, "1k"]; yes or no as it is."""
    if isinstance(value, bool):
        return value
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    return ",".join(map(str, value)) if listed else str(value)  # type: ignore[call-overload]


def texts_of(axes: Shape) -> dict[str, str | bool]:
    return {name: text_of(value) for name, value in axes.items()}


# ---- backends ------------------------------------------------------------------------------------


def named_backends(given: Backends) -> tuple[list[str], dict[str, str]]:
    """The names of backends, and of functions among them the folders that workers import them
    from. Raises BadInput for a function that a worker cannot import.
    """
    if isinstance(given, str):
        from ...impls.discovery.names import separated

        return separated(given), {}
    found: list[str] = []
    folders: dict[str, str] = {}
    for one in [given] if callable(given) else given:
        name = one if isinstance(one, str) else _name_of(one)
        found.append(name)
        if not isinstance(one, str):
            folders[name] = str(_folder_of(sys.modules[one.__module__]))
    return found, folders


def _name_of(function: Callable[..., Any]) -> str:
    """`attend@my_attention`."""
    module = str(getattr(function, "__module__", ""))
    path = str(getattr(function, "__qualname__", ""))
    at: Any = sys.modules.get(module)
    for part in path.split("."):
        at = getattr(at, part, None)
    why = ""
    if "<lambda>" in path:
        why = "a lambda has no name there"
    elif "<locals>" in path:
        why = "it is defined in another function"
    elif module == "__main__":
        why = "it is defined in a notebook, a script or a shell"
    elif at is not function or getattr(sys.modules[module], "__file__", None) is None:
        why = "no module has it under its name"
    if why:
        name = path.rpartition(".")[2] or type(function).__name__
        raise BadInput(
            f"backends: {name}: a worker cannot import it, since {why}; write it into a file, as"
            " `def attend(q, k, v, *, causal, scale)` in my_attention.py, and give"
            " my_attention.attend"
        )
    return f"{path}@{module}"


def _folder_of(module: ModuleType) -> Path:
    """From which `import` finds it."""
    file = Path(module.__file__ or "").resolve()
    depth = module.__name__.count(".") + (file.name == "__init__.py")
    return file.parents[depth]
