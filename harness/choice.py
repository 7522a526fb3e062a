"""What of a scenario is measured: all of it, or what --only and --skip leave."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..impls.aliases import real_name
from .case import Case, Group, group_cases
from .errors import NothingSelected
from .scenario import Scenario
from .study import Planned, studies_of
from .wall.plan import Wall, walls_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which cases, walls and studies of a scenario to measure: backends, shell patterns, or parts, of their ids."""

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    def takes(self, one: Case | Wall | Planned) -> bool:
        def matches(patterns: Iterable[str]) -> bool:
            return any(
                pattern == one.id or real_name(pattern) == one.backend or fnmatchcase(one.id, f"*{pattern}*") for pattern in patterns
            )

        return (not self.only or matches(self.only)) and not matches(self.skip)


class Selection(NamedTuple):
    """`duplicates`: how many repetitions of problems were left out."""

    groups: tuple[Group, ...]
    walls: tuple[Wall, ...]
    studies: tuple[Planned, ...]
    duplicates: int

    @property
    def cases(self) -> list[Case]:
        return [case for group in self.groups for case in group.cases]


def select(scenario: Scenario, device: str, choice: Choice) -> Selection:
    """The chosen cases, in their groups, walls and studies. Raises NothingSelected."""
    problem_groups, duplicates = scenario.problem_groups(device)
    every, walls = group_cases(scenario.backends, problem_groups), walls_of(scenario, device)
    groups = tuple(Group(number=group.number, cases=cases) for group in every if (cases := tuple(filter(choice.takes, group.cases))))
    studies = studies_of(scenario, device)
    some = Selection(groups, tuple(filter(choice.takes, walls)), tuple(filter(choice.takes, studies)), duplicates)
    if not some.groups and not some.walls and not some.studies:
        ids = [*(case.id for group in every for case in group.cases), *(wall.id for wall in walls), *(study.id for study in studies)]
        example = next(iter(ids), "none")
        raise NothingSelected(f"--only and --skip leave no case; they match parts of case ids such as {example}")
    return some
