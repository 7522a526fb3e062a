"""What an attack did to attnbench: what a run may never lose, double or leave behind, counted."""

from collections import Counter
from dataclasses import dataclass, field

COUNTED = ("lost", "doubled", "tracebacks", "hangs", "left")


@dataclass(slots=True)
class Outcome:
    """Of one try. It survived if nothing is counted and nothing is `wrong`.

    `what`: what was done, in words. `lost` and `doubled`: rows. `left`: processes that still ran
    after the command had ended. `wrong`: every promise that was broken, in words.
    """

    what: str = ""
    lost: int = 0
    doubled: int = 0
    tracebacks: int = 0
    hangs: int = 0
    left: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def survived(self) -> bool:
        return not self.wrong and not any(getattr(self, name) for name in COUNTED)

    def expect(self, holds: object, otherwise: str) -> None:
        """Note a broken promise."""
        if not holds:
            self.wrong.append(otherwise)


@dataclass(slots=True)
class Tally:
    """The outcomes of all tries of an attack, summed: `tried`, `survived` and what is counted."""

    attack: str
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.counts.update({name: getattr(outcome, name) for name in COUNTED})
        self.counts.update(tried=1, survived=int(outcome.survived))
