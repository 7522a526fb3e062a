"""What studies find: flat, numbers, text and lists, numbers with their unit in the name.

A study writes a `Finding` of any fields. What reports rely on is a model in
reports/data/findings.py or a pack's findings.py; a finding of another form is left out when it is
read.
"""

from contextlib import suppress
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

F = TypeVar("F", bound="Finding")


class Finding(BaseModel):
    """A finding of the study `STUDY`. May have more fields than its model names.

    Raises ValidationError if a value is not of its type.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="allow", allow_inf_nan=False)
    STUDY: ClassVar[str]

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)

    def __getitem__(self, name: str) -> Any:
        """A field by a name that is computed; None if it has none."""
        return getattr(self, name, None)

    def stored(self) -> dict[str, Any]:
        """As it stands in the row of its study."""
        return self.model_dump(exclude_unset=True)


def findings_of(model: type[F], found: object) -> list[F]:
    """The findings of the model's study among those of a run, each with the name of its `study`,
    without those that are not of the model's form.
    """
    kept: list[F] = []
    for one in found if isinstance(found, list) else []:
        if isinstance(one, dict) and one.get("study") == model.STUDY:
            with suppress(ValidationError):
                values = {name: value for name, value in one.items() if name != "study"}
                kept.append(model.model_validate(values))
    return kept


def of_one_size(rows: list[list[Any]]) -> list[list[Any]]:
    """Raises ValueError."""
    if len({len(row) for row in rows}) > 1:
        raise ValueError("wanted rows of one length")
    return rows


Count = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1.0001)]  # of sums, which round
Map = Annotated[
    list[Annotated[list[Share], Field(min_length=1)]],
    Field(min_length=1),
    AfterValidator(of_one_size),
]
"""Weights, [query][key]."""
Maybe = float | None
