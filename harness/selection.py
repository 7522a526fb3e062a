"""What of a scenario is measured: all of it, or what --only and --skip leave; and in which
interpreters.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..impls.discovery.names import real_name
from ..impls.problem import Problem
from .cases import Case, Group, Planned, Wall, group_cases
from .errors import BadInput, NothingSelected
from .process.interpreter import Interpreter
from .scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which cases, walls and studies of a scenario to measure: backends, shell patterns, or parts,
    of their ids.

    `ids`: whole ids, for a caller that has chosen already. `interpreters`: where to measure each of
    them; where there are none, in the interpreter that runs us.
    """

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    ids: frozenset[str] | None = None
    interpreters: tuple[Interpreter, ...] = ()

    @property
    def pythons(self) -> tuple[str | None, ...]:
        """The environments by name."""
        return tuple(one.name for one in self.interpreters) or (None,)

    def takes(self, one: Case | Wall | Planned) -> bool:
        def matches(patterns: Iterable[str]) -> bool:
            return any(
                pattern == one.id
                or real_name(pattern) == one.backend
                or fnmatchcase(one.id, f"*{pattern}*")
                for pattern in patterns
            )

        return (
            (self.ids is None or one.id in self.ids)
            and (not self.only or matches(self.only))
            and not matches(self.skip)
        )


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
    """The chosen cases, in their groups, walls and studies. A study is looked at in the first
    environment alone: it is not timed.

    Raises NothingSelected.
    """
    problem_groups, duplicates = scenario.problem_groups(device)
    every, walls = (
        group_cases(scenario.backends, problem_groups, choice.pythons),
        walls_of(scenario, device, choice.pythons),
    )
    groups = tuple(
        Group(number=group.number, cases=cases)
        for group in every
        if (cases := tuple(filter(choice.takes, group.cases)))
    )
    studies = studies_of(scenario, device)
    some = Selection(
        groups, tuple(filter(choice.takes, walls)), tuple(filter(choice.takes, studies)), duplicates
    )
    if not some.groups and not some.walls and not some.studies:
        ids = [
            *(case.id for group in every for case in group.cases),
            *(wall.id for wall in walls),
            *(study.id for study in studies),
        ]
        example = next(iter(ids), "none")
        raise NothingSelected(
            f"--only and --skip leave no case; they match parts of case ids such as {example}"
        )
    return some


def walls_of(
    scenario: Scenario, device: str, pythons: Sequence[str | None] = (None,)
) -> tuple[Wall, ...]:
    """Every backend on every combination in every environment, each once; none where the scenario
    does not ask for walls.
    """
    made = (
        Wall(
            backend=backend,
            problem=Problem(**values),
            kv_seq_len=values.get("kv_seq_len"),
            python=python,
        )
        for values in scenario.wall_values(device)
        for backend in scenario.backends
        for python in pythons
    )
    return tuple({wall.id: wall for wall in made}.values())


def studies_of(scenario: Scenario, device: str) -> tuple[Planned, ...]:
    """Every study that the scenario names, on its smallest problem: that with the fewest pairs, and
    the most heads among equals.
    """
    problem_groups, _ = scenario.problem_groups(device)
    problems = [problem for group in problem_groups for problem in group]
    if not problems:
        return ()
    smallest = min(problems, key=lambda one: (one.batch * one.seq_len * one.kv_seq_len, -one.heads))
    return tuple(Planned(study=name, problem=smallest) for name in scenario.studies)


def refuse_too_many(scenarios: Iterable[Scenario], choice: Choice) -> None:
    """Raises BadInput where environments make more of a scenario's cases than it allows; each by
    itself is looked at with its fields.
    """
    times = len(choice.pythons)
    for scenario in scenarios:
        count, most = times * max(map(scenario.count, scenario.devices)), scenario.limits.max_cases
        if count > most:
            hint = f"give fewer values, or raise the limit with --set limits.max_cases={count}"
            raise BadInput(
                f"--python: {scenario.name}: {count} cases in {times} environments; wanted at most"
                f" {most}; {hint}"
            )
