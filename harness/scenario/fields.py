"""The fields of a scenario below its top level: what each may hold, and what it means.

Types are strict: "4", 1.0 and true are not sizes. A single value stands for a list of one. Editors
show the descriptions through scenarios/schema.json.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ...impls import names
from ...impls.discovery import names as spelling
from ...impls.discovery.registry import unknown
from ...impls.problem import AXES
from ..cases.case import VALUE_ALIASES
from ..files.errors import instead_of, shown, suggestion
from ..rows.plans import PLANS
from ..studies import names as study_names
from ..studies import spellings
from . import lengths

LARGEST_SIZE = 1 << 40
LEAST_LETTERS = 4  # of a part of a name that says which backend is meant
# device files on Windows
RESERVED = {"con", "prn", "aux", "nul"} | {
    f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)
}


def wanted(what: str) -> PydanticCustomError:
    """The error for a value that is not `what`."""
    return PydanticCustomError("wanted", "{what}", {"what": what})


def whole_message(text: str) -> PydanticCustomError:
    """The error that says by itself what was found and wanted."""
    return PydanticCustomError("whole_message", "{text}", {"text": text})


def as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def sizes(least: int) -> BeforeValidator:
    """Takes whole numbers of at least `least`, also as 1k and 2m."""
    what = f"a whole number of {least} or more, such as 512 or 1k"

    def size(value: Any) -> int:
        if isinstance(value, str):
            if found := re.fullmatch(r"([0-9]{1,12})([kKmM])", value):
                value = int(found[1]) * {"k": 1024, "m": 1024**2}[found[2].lower()]
            elif value.isdecimal():
                raise wanted(f"{what}, without quotes")
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise wanted(what)
        if value > LARGEST_SIZE:
            raise wanted(f"at most {LARGEST_SIZE}")
        return value

    with_letter = Annotated[str, Field(pattern=r"^[0-9]+[kKmM]$")]
    form = Annotated[int, Field(ge=least)] | with_letter
    return BeforeValidator(size, json_schema_input_type=form)


def inert(text: str) -> str:
    """Free text; refuses what could drive a terminal or reverse the reading direction.

    Markup stays: whoever shows the text escapes it.
    """
    for character in text.strip():
        if unicodedata.category(character) in ("Cc", "Cf", "Cs") and character != "\n":
            raise wanted(f"plain text without U+{ord(character):04X}")
    return text.strip()


def inert_question(text: str) -> str:
    if not text.strip():
        raise wanted("a question in plain words")
    return inert(text)


def safe_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name) or name in RESERVED:
        raise wanted("a name of at most 64 lowercase letters, digits, _ and -, such as memory_wall")
    return name


def existing_backend(name: str) -> str:
    """A backend that there is here, or a name for a function of the user's."""
    known = names()
    if spelling.attribute_from_name(name) is not None or {name, spelling.real_name(name)} & {
        *known
    }:
        return name
    if "[" in spelling.real_name(name):
        why = next(filter(None, map(unknown, spelling.each(spelling.real_name(name)))), "")
    else:
        own = spelling.attribute_from_flag(name)
        hint = alike(name, known) or suggestion(name, (*known, *spelling.ALIASES)).strip()
        if not hint and own is not None and own.module not in known:
            hint = f"write your own function as {own.name} here"
        families = dict.fromkeys(one.partition(":")[0] for one in known)
        every = f"there are: {', '.join(families)}; variants: `attnbench list backends`"
        why = f"no backend {shown(name)}; {hint or every}"
    if why:
        raise whole_message(why)
    return name


def alike(name: str, known: Sequence[str]) -> str:
    """Asks whether a backend was meant whose letters are in this name, or the other way round: one
    of each file, as sdpa:flash and library:flash_attn_2 for flashattn.
    """
    letters, found = "" if ":" in name else _letters(name), dict[str, str]()
    for one in known:
        for part in map(_letters, one.split(":")):
            near = min(len(part), len(letters)) >= LEAST_LETTERS
            if near and (part in letters or letters in part):
                found.setdefault(one.partition(":")[0], one)
    return f"did you mean {', '.join(found.values())}?" if found else ""


def _letters(text: str) -> str:
    return re.sub("[^a-z]", "", text.lower())


def existing_study(name: str) -> str:
    """A study, or one with a value of one of its axes."""
    if name not in spellings():
        raise whole_message(f"no study {shown(name)}; {instead_of(name, study_names())}")
    return name


def as_lengths(value: Any) -> str:
    try:
        return lengths.packed(value)
    except ValueError as error:
        raise whole_message(str(error)) from None


def as_batches(value: Any) -> Any:
    """A list of sizes is one ragged batch, any other list several of them."""
    is_one = not isinstance(value, list | tuple) or all(map(lengths.is_size, value))
    return (value,) if is_one and value != [] else tuple(value)


# Every unknown name is compared with the known ones, every watched value with those of the grid.
AtMost = Field(max_length=256)
AtLeastOne = Field(min_length=1, max_length=256)
OneToMany = Field(min_length=1, max_length=1024)
Size = Annotated[int, sizes(1)]
Count = Annotated[int, sizes(0)]
LengthsInput = str | Annotated[list[Size], Field(min_length=1)]
Lengths = Annotated[str, BeforeValidator(as_lengths, json_schema_input_type=LengthsInput)]
KINDS = {int: Size, str: Lengths}
"""The type of an axis's values in scenario files, where it is another than in a Problem."""
Backend = Annotated[str, AfterValidator(existing_backend)]
Study = Annotated[str, AfterValidator(existing_study)]
Text = Annotated[str, AfterValidator(inert)]
Question = Annotated[str, AfterValidator(inert_question)]
Name = Annotated[
    str,
    AfterValidator(safe_name),
    Field(json_schema_extra={"pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}),
]


def other_names(names: Mapping[str, str], kind: Any) -> BeforeValidator:
    """Takes other names of values too; `kind` is the type of a value in the JSON Schema."""

    def our_name(value: Any) -> Any:
        return names.get(value, value) if isinstance(value, str) else value

    return BeforeValidator(our_name, json_schema_input_type=kind)


DeviceKind = Literal["cpu", "cuda"]
OfDevice = other_names(VALUE_ALIASES["device"], DeviceKind)


def one_or_list(kind: Any) -> BeforeValidator:
    """Takes a single value for a list of one; `kind` is the type of a value in the JSON Schema."""
    return BeforeValidator(as_tuple, json_schema_input_type=kind | list[kind])


class Strict(BaseModel):
    """Unknown fields are refused, types are not converted, and nothing changes afterwards."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        loc_by_alias=False,
    )


Model = TypeVar("Model", bound=BaseModel)
Form = Callable[[Any, Any], tuple[Any, Any]]
"""The type and the default of a field, from the type of an axis's values and its default."""


def with_axes(form: Form, *, scenario_wide: bool = False) -> Callable[[type[Model]], type[Model]]:
    """A class decorator: adds a field for each axis, or only for those that are scenario-wide."""
    where = " Applies unless the grid gives it." if scenario_wide else ""

    def add(model: type[Model]) -> type[Model]:
        fields: dict[str, Any] = {}
        for name, axis in AXES.items():
            if scenario_wide and not axis.scenario_wide:
                continue
            kind = Count if axis.opt_in and axis.type is int else axis.type  # 0: without it
            kind = KINDS.get(kind, kind)
            if name in VALUE_ALIASES:
                kind = Annotated[kind, other_names(VALUE_ALIASES[name], kind)]
            kind, default = form(kind, axis.given)
            names = AliasChoices(name, axis.alias) if axis.alias else None
            description = axis.description + where
            field = Field(default=default, description=description, validation_alias=names)
            fields[name] = kind, field
        made = create_model(model.__name__, __base__=model, __module__=model.__module__, **fields)
        made.__doc__ = model.__doc__
        return made

    return add


def several(kind: Any, _: Any) -> tuple[Any, Any]:
    """At least one value, or none if the axis is not given."""
    values = one_or_list(kind)
    if kind is Lengths:
        form = LengthsInput | list[LengthsInput]
        values = BeforeValidator(as_batches, json_schema_input_type=form)
    return Annotated[tuple[kind, ...], OneToMany, values], ()


def one(kind: Any, default: Any) -> tuple[Any, Any]:
    return (kind | None if default is None else kind), default


def optional(kind: Any, _: Any) -> tuple[Any, Any]:
    return kind | None, None


@with_axes(several)
class Axes(Strict):
    """Values per axis; every combination is one problem. An axis left out keeps its default."""


class Grid(Axes):
    """The axes, and the values that differ on one kind of device."""

    cpu: Axes | None = None
    """Axes that take other values on a CPU."""
    cuda: Axes | None = None
    """Axes that take other values on a GPU."""


@with_axes(optional)
class ExtraCase(Strict):
    """One problem outside the grid.

    An axis left out takes the grid's value, which must then be a single one.
    """

    device: Annotated[DeviceKind, OfDevice] | None = None
    """Measure this case on this kind of device only."""


class Plan(Strict):
    """How long and how often to measure. Fields left out come from the named plan."""

    like: Literal["quick", "standard", "rigorous"] = "standard"
    """The named plan that gives the other fields."""
    processes: int = Field(default=10, ge=1, le=64)
    """Worker processes, each of which measures every case; one process cannot show run-to-run
    variation."""
    min_blocks: int = Field(default=2, ge=1, le=1000)
    """Fewest blocks per process; a block calls every backend in turn."""
    max_blocks: int = Field(default=3, ge=1, le=1000)
    """Most blocks per process."""
    precision_ratio: float = Field(default=0.03, gt=0, le=1)
    """Stop when the 95 % intervals of the latency and its ratios reach this half-width: 0.05 is 5
    %."""
    budget_s: float = Field(default=10.0, gt=0, le=86_400)
    """Stop a case after this many seconds of sampling, precise or not, shared equally by its
    processes."""
    windows: int = Field(default=3, ge=1, le=100)
    """How often utilization and energy are measured per case; with one there is no interval."""
    window_s: float = Field(default=6.0, ge=0.2, le=600)
    """Length of one such window. Counters are averages over 0.1 to 1 s, so short windows are
    coarse."""
    allocator: Literal["warm_heap", "default"] = "warm_heap"
    """On a CPU: warm_heap keeps freed memory while latency is measured, so that calls use it again
    instead of waiting for new pages; default leaves the C library unchanged."""
    caches: Literal["warm", "cold"] = "warm"
    """On a CPU, of fewer queries than keys in scope core without gradients: cold has each call read
    other copies of keys and values, from memory, as between a model's layers; warm has all calls
    read the same ones, which caches may hold."""

    @model_validator(mode="before")
    @classmethod
    def fill(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"like": value}
        if isinstance(value, dict):
            return {**PLANS.get(str(value.get("like", "standard")), {}), **value}
        if not isinstance(value, Plan):
            raise wanted("quick, standard, rigorous or a mapping of fields")
        return value

    @model_validator(mode="after")
    def ordered(self) -> "Plan":
        if self.min_blocks > self.max_blocks:
            raise whole_message(
                f"min_blocks ({self.min_blocks}) is larger than max_blocks ({self.max_blocks});"
                " wanted at most max_blocks; set both"
            )
        return self


class Limits(Strict):
    """What a case may cost before it is stopped, and how many cases a scenario may have."""

    timeout_s: float = Field(default=60.0, gt=0, le=86_400)
    """Time limit of one step of a case (a call, a warm-up, a block); a case that exceeds it is
    stopped, with the status timeout."""
    memory_gib: float | None = Field(default=None, gt=0)
    """Memory for inputs and peak together, in GiB (default: a safe share of what is available)."""
    wall_tolerance_ratio: float = Field(default=0.003, gt=0, le=0.5)
    """Precision of a wall: the search ends when the longest N that fits and the shortest that fails
    differ by this share."""
    wall_budget_s: float | None = Field(default=None, gt=0, le=86_400)
    """Time for the trials of all walls together (default: no limit); walls not reached by then are
    limited by time."""
    max_cases: int = Field(default=10_000, ge=1)
    """A scenario with more cases is refused before anything is expanded."""
