"""The scenario of a study alone: by its name, or of files of the user's that it looks at."""

from collections.abc import Sequence

from ..files.errors import option
from ..studies import declared, takes
from .changes import Change
from .document import Document, placeless
from .suite_file import Entry, validated

SHARED = ("device", "limits", "plan")
"""Fields of all scenarios beside it that are this one's too; the others ask another question."""


def alone(study: str, changes: Sequence[Change] = (), files: Sequence[str] = ()) -> Entry:
    """`study`: as scenarios spell it; one that takes `files` has their names. Raises BadInput."""
    name = study.partition(":")[0]
    asked = declared(name).question_of.format(names=", ".join(files)[:200])
    data = {
        "name": name,
        "question": asked or declared(name).question,
        "backends": ["fused"],
        "grid": {"batch": 1, "seq_len": 512, "d_model": 512, "heads": 8, "causal": True},
        "plan": "quick",
        "limits": {"timeout_s": 600},
        "studies": [] if files else [study],
    }
    origin = option(takes(name)) if files else f"study {study}"
    scenario = validated(Document(placeless(data), origin), changes)
    return Entry(scenario=scenario, only=(f"study-{name}",))


def beside(study: str, changes: Sequence[Change], files: Sequence[str]) -> Entry:
    """The entry beside others that looks at files; `changes`: of all of them."""
    own = [one for one in changes if one.path.partition(".")[0] in SHARED]
    return alone(study, own, files)
