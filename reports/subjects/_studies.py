"""What subjects of studies share: the findings by run, and why a study of a run found nothing."""

from collections.abc import Iterator
from typing import TypeVar

from ...harness.rows.findings import Finding, findings_of
from ..data.run_meta import Meta, found_nothing, run_caption
from ..elements import Text, note

F = TypeVar("F", bound=Finding)


def studied(model: type[F], meta: Meta) -> Iterator[tuple[str, str, list[F]]]:
    """Each run with findings of this study: its name, the caption of its figures, the findings."""
    for name, run in meta.items():
        if found := findings_of(model, run.get("studies")):
            yield name, run_caption(run, name if len(meta) > 1 else ""), found


def failed(meta: Meta, *studies: str) -> Iterator[Text]:
    """A note for each run in which some of these studies, or some of their parts, found nothing."""
    for run in meta.values():
        reasons = found_nothing(run, studies)
        more = f", and {len(reasons) - 1} more parts" if len(reasons) > 1 else ""
        yield from (note(f"{one}{more}.") for one in reasons[:1])
