"""A verb is declared once: a request, whose fields are the options of the command line, the
arguments in Python and the settings in pytest, and a function that takes it.

A request is a frozen dataclass with annotated fields:

    threads: Annotated[Annotated[int, Ge(1)] | None, Option("Threads of torch.", "COUNT")] = None

pydantic checks a value by its field's type, whoever gave it, and is imported only then: help and
every pytest session read the declarations alone.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache, wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le

from ..files.errors import BadInput, Refusal, Spelling, instead_of, option, shown

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Option:
    """What users see of a field. `value`: what it takes, as FILE; `group`: its heading in the help;
    `short`: as -o; `also`: other names; `complete`: what a shell offers, given the beginning.
    `parse`: makes what the type checks of what was given, or raises ValueError. `wanted`: in words,
    where the type does not say it. `argument`: without a name in a shell. `of`: who has it, if not
    everybody.
    """

    help: str
    value: str = ""
    group: str = ""
    short: str = ""
    also: tuple[str, ...] = ()
    complete: Callable[..., list[str]] | None = None
    parse: Callable[[Any], Any] | None = None
    wanted: str = ""
    argument: bool = False
    hidden: bool = False
    of: Spelling | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A field of a request. `default`: MISSING if it must be given."""

    name: str
    type: Any
    default: Any
    option: Option

    @property
    def is_switch(self) -> bool:
        return self.type is bool

    @property
    def is_many(self) -> bool:
        """Whether a shell gives it more than once."""
        return any(get_origin(one) in (list, tuple) for one in (self.type, *get_args(self.type)))

    @property
    def place(self) -> str:
        """In a message."""
        return option(self.option.value.strip(".[]") if self.option.argument else self.name)

    def checked(self, value: Any) -> Any:
        """Raises BadInput."""
        from pydantic import ValidationError

        try:
            parsed = self.option.parse(value) if self.option.parse else value
            return _adapter(self.type).validate_python(parsed)
        except ValidationError:
            wanted = self.option.wanted or wanted_of(self.type)
            names = [one for one in _literals(self.type) if isinstance(one, str)]
            hint = f"; {instead_of(value, names)}" if names else ""
            wanted = hint or f"; wanted {wanted}"
            raise BadInput(f"{self.place}: found {shown(value)}{wanted}") from None
        except ValueError as error:
            if isinstance(error, Refusal):
                raise
            raise BadInput(f"{self.place} {shown(value)}: {error}") from None


@cache
def _adapter(annotation: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))


@cache
def declared(request: Any) -> dict[str, Declared]:
    """The fields of a request, those of its bases first."""
    hints = get_type_hints(request, include_extras=True)
    found = {}
    for one in fields(request):
        annotation = hints[one.name]
        known, *marks = get_args(annotation)
        (about,) = (mark for mark in marks if isinstance(mark, Option))
        found[one.name] = Declared(name=one.name, type=known, default=one.default, option=about)
    return found


def checked(request: type[R], given: Mapping[str, Any], spelling: Spelling) -> R:
    """A request of what was given, by name. Raises BadInput with every wrong value; a request's own
    __post_init__ refuses what does not fit together.
    """
    fields_: Any = request
    known = {
        name: one for name, one in declared(fields_).items() if one.option.of in (None, spelling)
    }
    names = {also: name for name, one in known.items() for also in one.option.also}
    problems, values = [], {}
    for name, value in given.items():
        full = names.get(name, name)
        if full not in known:
            problems.append(f"{option(name)}: no such option; {instead_of(name, known)}")
            continue
        try:
            values[full] = known[full].checked(value)
        except BadInput as error:
            problems += error.problems
    problems += [
        f"{one.place}: missing; wanted {one.option.wanted or wanted_of(one.type)}"
        for name, one in known.items()
        if one.default is MISSING and name not in given
    ]
    if problems:
        raise BadInput(*problems)
    return request(**values)


def wanted_of(annotation: Any) -> str:
    """In words: a whole number from 1 to 1000."""
    if get_origin(annotation) is Annotated:
        inner, *limits = get_args(annotation)
        least = [one.ge for one in limits if isinstance(one, Ge)]
        above = [one.gt for one in limits if isinstance(one, Gt)]
        most = [one.le for one in limits if isinstance(one, Le)]
        words = wanted_of(inner)
        words += f" above {above[0]}" if above else ""
        if least and most:
            return f"{words} from {least[0]} to {most[0]}"
        return words + "".join(f" of {one} or more" for one in least)
    parts = [one for one in get_args(annotation) if one is not NoneType]
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(wanted_of, parts)))
    if get_origin(annotation) is Literal:
        return f"one of {', '.join(map(str, parts))}"
    plain = {int: "a whole number", float: "a number", bool: "yes or no", Path: "a path"}
    return plain.get(annotation, "text")


def _literals(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Literal:
        return [*get_args(annotation)]
    return [value for one in get_args(annotation) for value in _literals(one)]


# ---- verbs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """`answer`: what Python gets; `tell`: prints it in a terminal, and gives the exit code. Their
    request is the type of their only parameter; the docstring of `tell` is the help. `usual`: the
    options of -h, all if empty. `python`: what Python takes where nothing is given, if not what a
    shell takes.
    """

    tell: Callable[[Any], int]
    answer: Callable[[Any], Any] | None = None
    examples: Sequence[str] = ()
    usual: Sequence[str] = ()
    python: Mapping[str, Any] = field(default_factory=dict)

    @property
    def request(self) -> type:
        (parameter,) = inspect.signature(self.tell).parameters.values()
        return parameter.annotation  # type: ignore[no-any-return]


def function(answer: Callable[[Any], R], **defaults: Any) -> Callable[..., R]:
    """For Python: `answer` with a request's fields as arguments, those without an option's name
    first. `defaults`: in place of a shell's.
    """
    (parameter,) = inspect.signature(answer).parameters.values()
    request = parameter.annotation
    known = declared(request)
    first = [name for name, one in known.items() if one.option.argument]

    @wraps(answer)
    def call(*arguments: Any, **named: Any) -> R:
        try:
            if len(arguments) > len(first):
                raise BadInput(
                    f"{len(arguments)} arguments without a name; wanted at most {len(first)}:"
                    f" {', '.join(first)}"
                )
            given = dict(zip(first, arguments, strict=False))
            if twice := [name for name in given if name in named]:
                raise BadInput(f"{twice[0]}: given twice; wanted it once")
            return answer(checked(request, {**defaults, **given, **named}, Spelling.PYTHON))
        except Refusal as error:
            error.args = (error.spelled(Spelling.PYTHON),)
            raise

    kinds = inspect.Parameter
    parameters = [
        kinds(
            name,
            kinds.POSITIONAL_OR_KEYWORD if name in first else kinds.KEYWORD_ONLY,
            default=kinds.empty if one.default is MISSING else defaults.get(name, one.default),
            annotation=one.type,
        )
        for name, one in sorted(known.items(), key=lambda item: item[0] not in first)
        if one.option.of in (None, Spelling.PYTHON)
    ]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call
