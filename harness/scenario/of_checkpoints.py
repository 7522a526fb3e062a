"""The scenario of which nothing is measured but the user's trained models."""

from collections.abc import Iterable, Sequence

from ..studies import OF_CHECKPOINTS
from . import from_mapping
from .suite_file import Entry

SHARED = ("device", "limits", "plan")
"""Fields of all scenarios of a suite that are this one's too; the others ask another question."""


def of_checkpoints(names: Sequence[str], changes: Iterable[str] = ()) -> Entry:
    """`names`: of the models. Raises BadInput."""
    data = {
        "name": OF_CHECKPOINTS,
        "question": f"What do the heads of {', '.join(names)[:200]} look at, and which of them can"
        " be removed?",
        "backends": ["fused"],
        "grid": {"batch": 1, "seq_len": 16, "d_model": 64, "heads": 4, "causal": True},
        "plan": "quick",
        "limits": {"timeout_s": 600},
    }
    scenario = from_mapping(data, "--checkpoint", changes)
    return Entry(scenario=scenario, only=(f"study-{OF_CHECKPOINTS}",))


def beside(names: Sequence[str], changes: Iterable[str]) -> Entry:
    """The entry of a suite that looks at the models; `changes`: of the whole suite."""
    return of_checkpoints(
        names, [one for one in changes if one.partition("=")[0].strip().startswith(SHARED)]
    )
