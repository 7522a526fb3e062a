"""What a row of rows.jsonl holds, for each kind of row: one model for all who write or read rows.

fields.py has the fields. record.py checks by them what it writes, run_files.py what it reads,
process/replies.py what a worker says; the columns of reports have their types and titles from here.
Rows are checked and stay dictionaries: fields that only later versions know are kept.
"""

from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic.fields import FieldInfo

from ...impls.problem import AXES
from ..cases.case import ADDED_LATER
from .fields import PARTS, Named, Outcome, Placed, Shape, ShapeOfWall
from .values import Count, Each, Int, Object, Part

# For reports, which do not import impls; what is defined here is public, too.
__all__ = ["ADDED_LATER", "AXES"]

SHOWN = 40  # characters of a value that is refused
KINDS: dict[str, type[Part]] = {
    kind: create_model(kind.title(), __base__=parts[::-1]) for kind, parts in PARTS.items()
}


class Column(NamedTuple):
    """A field of a row. `kind`: the type as docs/format.md has it; `default`: where it lacks, or
    what a writer puts where nothing was said.
    """

    name: str
    kind: str
    nullable: bool
    default: Any
    title: str


EMPTY = {"str": "", "list": [], "object": {}}
TYPES = {int: "int", float: "float", str: "str", bool: "bool", list: "list", dict: "object"}


def _column(name: str, field: FieldInfo) -> Column:
    kinds = _plain(field.annotation)
    kind = TYPES[kinds[0]]
    return Column(
        name=field.alias or name,
        kind=kind,
        nullable=type(None) in kinds,
        default=EMPTY.get(kind) if field.is_required() else field.default,
        title=field.title or "",
    )


def _plain(annotation: Any) -> list[Any]:
    """The plain types of a value: [list, NoneType] of `Samples | None`."""
    origin = get_origin(annotation)
    if annotation in TYPES or annotation is type(None):
        return [annotation]
    if origin in TYPES:
        return [origin]
    if origin is Literal:
        return [str]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [dict]
    inner = get_args(annotation)[:1] if origin is Annotated else get_args(annotation)
    return [plain for one in inner for plain in _plain(one)]


def columns_of(model: type[BaseModel]) -> list[Column]:
    return [_column(name, field) for name, field in model.model_fields.items()]


FIELDS = {kind: {one.name: one for one in columns_of(model)} for kind, model in KINDS.items()}
"""By kind and name, in the order of a row."""
SAMPLES = tuple(name for name in FIELDS["latency"] if name.endswith(("block_ms", "beside_ms")))
USUAL: dict[str, dict[str, Any]] = {
    kind: {one.name: one.default for one in fields.values()} for kind, fields in FIELDS.items()
}
"""By kind: what each field is if nothing was said of it."""


# ---- checks --------------------------------------------------------------------------------------


class AnyRow(Part):
    """Of a kind that only later versions know, too."""

    kind: str
    case: str


def check_row(row: dict[str, Any]) -> None:
    """In the current format, of any kind; what it lacks gets its default. One of a kind that is not
    known is not checked further. Raises ValueError, see `fault`.
    """
    check(row, AnyRow)
    if (kind := row["kind"]) in KINDS:
        check(row, KINDS[kind])
        for name, value in USUAL[kind].items():
            row.setdefault(name, value)


def check(document: object, model: type[BaseModel]) -> None:
    """Raises ValueError, see `fault`."""
    try:
        model.model_validate(document)
    except ValidationError as error:
        raise ValueError(fault(error)) from None


def fault(error: ValidationError) -> str:
    """What is wrong first: `windows[0].calls: found 0, wanted greater than 0`."""
    first = error.errors(include_url=False, include_context=False)[0]
    steps = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in first["loc"])
    place = "".join(steps).removeprefix(".")
    found = "nothing" if first["input"] is None else ascii(first["input"])
    if first["type"] == "missing":
        return f"{place}: found nothing, wanted a value"
    found = found if len(found) <= SHOWN else f"{found[:SHOWN]}..."
    wanted = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if not place:  # found of several fields together, which names them
        return wanted
    return f"{place}: found {found}, wanted {wanted.removeprefix('wanted ')}"


GIVEN = {*Named.model_fields, *Placed.model_fields, *Outcome.model_fields, "attempt", "spent_s"}
"""What the run says of a row itself."""


@cache
def some_of(kind: str) -> type[BaseModel]:
    """Any fields of a row of this kind that are found while it is measured, and no others."""
    fields: dict[str, Any] = {
        name: (Annotated[field.annotation, Field(), *field.metadata], None)
        for name, field in KINDS[kind].model_fields.items()
        if field.alias is None and name not in GIVEN
    }
    config = ConfigDict(strict=True, extra="forbid")
    return create_model(f"SomeOf{kind.title()}", __config__=config, **fields)


# ---- what run.json must hold for its run to be read --------------------------------------------


class Planned(Part):
    case: str


class PlannedCase(Planned, Shape):
    backend: str


class PlannedWall(Planned, ShapeOfWall):
    backend: str


class PlannedStudy(Planned):
    study: str


class Source(Part):
    """Who published the numbers of a run that is not ours."""

    title: str
    cited: str
    url: str
    licence: str
    date: str
    commit: str | None = None
    how: str | None = None


class Meta(Part):
    """`source`: of numbers that others published; only there what a run of ours has may be null."""

    run: str
    device: str
    scenario: Object
    environment: Object
    source: Source | None = None
    attnbench: str | None = None
    started_utc: str | None = None
    seed: Int | None = None
    memory_bytes: Count | None = None
    cases: Each[PlannedCase]
    walls: Each[PlannedWall] = Field([])
    studies: Each[PlannedStudy] = Field([])
    own_backends: Each[str] | None = None

    @model_validator(mode="after")
    def _says_what_we_know(self) -> "Meta":
        given = [name for name in OURS if name in self.model_fields_set]
        if self.source is None and (unsaid := [one for one in given if getattr(self, one) is None]):
            raise ValueError(f"{unsaid[0]}: found null, wanted a value in a run without a source")
        return self


OURS = ("attnbench", "started_utc", "seed")
"""What attnbench knows of every run that it makes."""


def check_meta(meta: dict[str, Any]) -> None:
    """Fields that the first version did not have get their later values. Raises ValueError."""
    check(meta, Meta)
    for one in (*meta["cases"], *meta.get("walls", ())):
        for name, value in ADDED_LATER.items():
            one.setdefault(name, value)
