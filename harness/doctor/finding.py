"""One fact about this machine, with its grade and what can be done about it."""

from dataclasses import dataclass
from typing import Literal

Grade = Literal["ok", "note", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fact with its grade and, where something can be done, advice. `gpu`: short UUID of the
    GPU that it is about, "" for the machine.

    bad: a run on the GPU could not be trusted, or could not be made.
    """

    about: str
    found: str
    grade: Grade = "ok"
    advice: str = ""
    gpu: str = ""
