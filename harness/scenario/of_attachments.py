"""The scenario of which nothing is measured but the user's attachments."""

from collections.abc import Sequence

from ..files.errors import option
from ..studies import declared, takes
from ..studies.attachments import Attachment
from . import Change, from_mapping
from .suite_file import Entry

SHARED = ("device", "limits", "plan")
"""Fields of all scenarios beside it that are this one's too; the others ask another question."""


def alone(attachments: Sequence[Attachment], changes: Sequence[Change] = ()) -> Entry:
    """Raises BadInput."""
    study, names = attachments[0].study, ", ".join(one.name for one in attachments)
    data = {
        "name": study,
        "question": declared(study).question_of.format(names=names[:200]),
        "backends": ["fused"],
        "grid": {"batch": 1, "seq_len": 16, "d_model": 64, "heads": 4, "causal": True},
        "plan": "quick",
        "limits": {"timeout_s": 600},
    }
    scenario = from_mapping(data, option(takes(study)), changes)
    return Entry(scenario=scenario, only=(f"study-{study}",))


def beside(attachments: Sequence[Attachment], changes: Sequence[Change]) -> Entry:
    """The entry beside others that looks at the attachments; `changes`: of all of them."""
    return alone(attachments, [one for one in changes if one.path.partition(".")[0] in SHARED])
