"""A verb is declared once: a request, whose fields are the options of the command line, the
arguments in Python and the settings in pytest, and a function that takes it.

A request is a frozen dataclass with annotated fields, whose help is the string below each:

    threads: Annotated[int | None, Option("COUNT", least=1)] = None
    "Threads of torch."

pydantic checks a value by its field's type, whoever gave it, and is imported only then: help and
every pytest session read the declarations alone.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, wraps
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ..files.errors import BadInput, Refusal, Spelling, instead_of, option, shown, suggestion

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ALIASES = f"{__package__}.fields"
"""The module of types that several requests have."""
T = TypeVar("T")
R = TypeVar("R", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class Option:
    """What users see of a field. `value`: what it takes, as FILE, if not the words of its type;
    `group`: its heading in the help; `help`: "" if it stands below the field, or below an alias for
    its type in fields.py. `short`: as -o; `also`: other names; `complete`: what a shell offers,
    given the beginning, if not the words of its type.
    `parse`: makes what the type checks of what was given, or raises ValueError. `least`, `most`,
    `above`: limits of a number. `wanted`: in words, where type and limits do not say it.
    `needs`: the option without which it says nothing. `argument`: without a name in a shell. `of`:
    who has it, if not everybody. `name`, `type`, `default`: of the field; MISSING if it must be
    given.
    """

    value: str = ""
    group: str = ""
    help: str = ""
    short: str = ""
    also: tuple[str, ...] = ()
    complete: Callable[..., list[str]] | None = None
    parse: Callable[[Any], Any] | None = None
    least: float | None = None
    most: float | None = None
    above: float | None = None
    wanted: str = ""
    needs: str = ""
    argument: bool = False
    hidden: bool = False
    of: Spelling | None = None
    name: str = ""
    type: Any = None
    default: Any = None

    @property
    def limits(self) -> str:
        """In words."""
        if self.least is not None and self.most is not None:
            return f" from {self.least} to {self.most}"
        some = {" of {} or more": self.least, " above {}": self.above, " and at most {}": self.most}
        return "".join(text.format(one) for text, one in some.items() if one is not None)

    @property
    def is_switch(self) -> bool:
        return self.type is bool

    @property
    def is_many(self) -> bool:
        """Whether a shell gives it more than once."""
        return any(get_origin(one) in (list, tuple) for one in (self.type, *get_args(self.type)))

    @property
    def words(self) -> list[str]:
        """Those that it takes alone."""
        return [one for one in _literals(self.type) if isinstance(one, str)]

    @property
    def place(self) -> str:
        """In a message."""
        return option(self.value.strip(".[]") if self.argument else self.name)

    @property
    def for_shell(self) -> bool:
        return self.of in (None, Spelling.SHELL)

    def checked(self, value: Any, spelling: Spelling) -> Any:
        """Python gives numbers as such, the others their text. Raises BadInput."""
        from pydantic import ValidationError

        is_text = self.is_many or Path in (self.type, *get_args(self.type))
        try:
            parsed = self.parse(value) if self.parse else value
            strict = spelling is Spelling.PYTHON and not is_text
            return _adapter(self).validate_python(parsed, strict=strict)
        except ValidationError as invalid:
            wrong = invalid.errors()[0]["input"]  # of several
        except ValueError as error:
            if isinstance(error, Refusal):
                raise
            raise BadInput(f"{self.place} {shown(value)}: {error}") from None
        hint = suggestion(value, self.words)
        raise BadInput(f"{self.place}: found {shown(wrong)}; {hint}wanted {self.wanted}")


@cache
def _adapter(one: Option) -> Any:
    from pydantic import ConfigDict, Field, TypeAdapter

    limits = Field(ge=one.least, le=one.most, gt=one.above)
    config = ConfigDict(arbitrary_types_allowed=True)
    kind: Any = Annotated[one.type, limits]
    return TypeAdapter(kind, config=config)


@cache
def declared(request: "type[DataclassInstance]") -> dict[str, Option]:
    """The fields of a request by name, those of its bases first."""
    hints = get_type_hints(request, include_extras=True)
    found = {}
    for one in fields(request):
        annotation = hints[one.name]
        known, about = get_args(annotation)
        about = replace(about, name=one.name, type=known, default=one.default)
        found[one.name] = replace(
            about,
            value=about.value or "|".join(about.words),
            help=about.help or _help_below(request, one.name),
            wanted=about.wanted or wanted_of(known) + about.limits,
        )
    return found


def _help_below(request: type, name: str) -> str:
    for one in request.__mro__:
        if name in inspect.get_annotations(one):
            return _strings_below(one.__module__).get(f"{one.__name__}.{name}", "")
    return ""


@cache
def _strings_below(module: str) -> dict[str, str]:
    """Below the names of a module, and the fields of its classes: by Class.field. None where only
    compiled files are installed.
    """
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:
        return {}
    found = dict(_strings_below(ALIASES)) if module != ALIASES else {}
    classes = [one for one in tree.body if isinstance(one, ast.ClassDef)]
    for of, body in [("", tree.body), *((f"{one.name}.", one.body) for one in classes)]:
        for one, below in pairwise([*body, ast.Pass()]):
            if not isinstance(one, ast.Assign | ast.AnnAssign):
                continue
            name = ast.unparse(one.target if isinstance(one, ast.AnnAssign) else one.targets[0])
            match below, getattr(one, "annotation", None):
                case ast.Expr(value=ast.Constant(value=str(text))), _:
                    found[of + name] = " ".join(text.split())
                case _, ast.Name(alias) | ast.Attribute(attr=alias):
                    found[of + name] = found.get(alias, "")
    return found


def checked(request: type[R], given: Mapping[str, Any], spelling: Spelling) -> R:
    """A request of what was given, by name. Raises BadInput with every wrong value; a request's own
    __post_init__ refuses what does not fit together.
    """
    known = {name: one for name, one in declared(request).items() if one.of in (None, spelling)}
    full = {also: name for name, one in known.items() for also in (name, *one.also)}
    problems, values = list[str](), {}
    for name, value in given.items():
        try:
            if name not in full:
                raise BadInput(f"{option(name)}: no such option; {instead_of(name, known)}")
            values[full[name]] = known[full[name]].checked(value, spelling)
        except BadInput as error:
            problems += error.problems
    absent = known.keys() - {full.get(name) for name in given}
    problems += [
        f"{one.place}: missing; wanted {one.wanted}"
        for name, one in known.items()
        if one.default is MISSING and name in absent
    ]
    for one in known.values():
        needs, without = one.needs, values.get(one.name, one.default) == one.default
        if needs and not without and values.get(needs) in (None, ()):
            problems.append(f"{one.place} needs {option(needs, known[needs].value)}")
    if problems:
        raise BadInput(*problems)
    return request(**values)


def refuse(problems: Mapping[str, object]) -> None:
    """Raises BadInput with the first that holds."""
    for problem, holds in problems.items():
        if holds:
            raise BadInput(problem)


def as_typed(value: object) -> str:
    """2 and not 2.0, a,b and not ('a', 'b')."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def words(request: "DataclassInstance", but: Sequence[str] = ()) -> list[str]:
    """A request as a shell takes it, without the options in `but`."""
    found: list[str] = []
    for name, one in declared(type(request)).items():
        value = getattr(request, name)
        if one.for_shell and name not in but and value != one.default:
            found += [] if one.argument else [f"--{name.replace('_', '-')}"]
            found += [] if one.is_switch else [as_typed(value)]
    return found


def wanted_of(annotation: Any) -> str:
    """In words."""
    parts = [one for one in get_args(annotation) if one is not NoneType]
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(wanted_of, parts)))
    if get_origin(annotation) is tuple:
        return wanted_of(parts[0])
    if get_origin(annotation) is Literal:
        return f"one of {', '.join(map(str, parts))}"
    plain: dict[Any, str] = {
        int: "a whole number",
        float: "a number",
        bool: "yes or no",
        Path: "a path",
    }
    plain |= {str: "text", Callable: "a function", Mapping: "a mapping"}
    return plain.get(get_origin(annotation) or annotation, "a list")


def _literals(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Literal:
        return [*get_args(annotation)]
    return [value for one in get_args(annotation) for value in _literals(one)]


# ---- verbs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """`answer`: what Python gets; `tell`: prints it in a terminal, and gives the exit code. Their
    request is the type of their only parameter; the docstring of `tell` is the help. `usual`: the
    names of -h's options, all if empty.
    """

    tell: Callable[[Any], int]
    answer: Callable[[Any], Any] | None = None
    examples: Sequence[str] = ()
    usual: str = ""

    @property
    def request(self) -> type:
        (parameter,) = inspect.signature(self.tell).parameters.values()
        return parameter.annotation  # type: ignore[no-any-return]

    @property
    def function(self) -> Callable[..., Any]:
        """For Python."""
        return function(self.answer or self.tell)


@contextmanager
def for_python() -> Iterator[None]:
    """Refusals name options as arguments; a decorator, too."""
    try:
        yield
    except Refusal as error:
        error.problems = tuple(error.spelled(Spelling.PYTHON).splitlines())
        error.args = ("\n".join(error.problems),)
        raise


def function(answer: Callable[[Any], T]) -> Callable[..., T]:
    """For Python: `answer` with a request's fields as arguments, those without an option's name
    first. It is quiet if not told otherwise.
    """
    (parameter,) = inspect.signature(answer).parameters.values()
    request = parameter.annotation
    known = [one for one in declared(request).values() if one.of in (None, Spelling.PYTHON)]
    known.sort(key=lambda one: not one.argument)
    first = [one.name for one in known if one.argument]
    defaults = {one.name: True for one in known if one.name == "quiet"}

    @wraps(answer)
    @for_python()
    def call(*arguments: Any, **named: Any) -> T:
        if len(arguments) > len(first):
            raise BadInput(
                f"{len(arguments)} arguments without a name; wanted at most {len(first)}:"
                f" {', '.join(first)}"
            )
        given = dict(zip(first, arguments, strict=False))
        if twice := [name for name in given if name in named]:
            raise BadInput(f"{twice[0]}: given twice; wanted it once")
        return answer(checked(request, {**defaults, **given, **named}, Spelling.PYTHON))

    kinds = inspect.Parameter
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            kinds(
                one.name,
                kinds.POSITIONAL_OR_KEYWORD if one.argument else kinds.KEYWORD_ONLY,
                default=kinds.empty
                if one.default is MISSING
                else defaults.get(one.name, one.default),
            )
            for one in known
        ]
    )
    about = "\n".join(f"{one.name} ({one.wanted}): {one.help}" for one in known)
    call.__doc__ = f"{inspect.getdoc(answer)}\n\n{about}\n"
    return call
