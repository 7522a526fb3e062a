"""What subjects of studies share: why a study of a run found nothing."""

from collections.abc import Iterator

from ..data.run_meta import Meta
from ..elements import Text, note


def failed(meta: Meta, *studies: str) -> Iterator[Text]:
    """A note for each run in which some of these studies, or some of their parts, found nothing."""
    for run in meta.values():
        reasons = [one for one in run.get("unanswered") or [] if one.get("study") in studies]
        for one in reasons[:1]:
            more = f", and {len(reasons) - 1} more parts" if len(reasons) > 1 else ""
            why = one.get("reason") or one.get("status")
            yield note(f"{one.get('case') or one.get('study')} found nothing: {why}{more}.")
