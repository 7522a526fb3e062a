"""What studies find: flat, numbers, text and lists, numbers with their unit in the name.

A study writes a `Finding` of any fields. Those that a subject of a report relies on are a model in
its pack's findings.py; a finding of another form is left out when it is read.
"""

from contextlib import suppress
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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


Count = Annotated[int, Field(gt=0)]
Maybe = float | None
