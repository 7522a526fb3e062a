"""Which cases of a scenario are measured, and whether user modules may be imported."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from ... import impls
from ...impls.axes.lengths import alone
from ...impls.discovery import names
from ...impls.discovery.registry import unknown
from ...impls.problem import OPT_IN, Problem
from ..cases.case import Case, Group, PlannedStudy, Wall
from ..files.errors import BadInput, EnvironmentUnmet, NothingSelected, option, shown
from ..studies import parts_of, takes
from ..studies.attachments import Attachment
from . import Scenario
from .shards import Shard, Unit, Units, part_of, units_of

MOST_NAMED = 6
ALIKE = 0.8  # of two names, such as sdap:flash and sdpa:flash


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to measure of a scenario.

    `only`, `skip`: backends, shell patterns, or parts of ids of cases, walls and studies. `ids`:
    whole ids, for a caller that has selected already. `within`: a second `only`; both must match.
    `attachments`: files of the user's that studies look at beside the cases. `shard`: of what the
    others select, only this part.
    """

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    ids: frozenset[str] | None = None
    attachments: tuple[Attachment, ...] = ()
    shard: Shard | None = None

    def takes(self, one: Unit) -> bool:
        def matches(patterns: Iterable[str]) -> bool:
            return any(matching(pattern, one) for pattern in patterns)

        named = self.ids is None or one.id in self.ids
        chosen = all(matches(some) for some in (self.only, self.within) if some)
        return named and chosen and not matches(self.skip)

    def narrowed(self, only: Sequence[str], skip: Sequence[str]) -> "Selection":
        """Of this selection only what `only` matches too, without what `skip` matches."""
        return replace(self, within=(*self.within, *only), skip=(*self.skip, *skip))


def matching(pattern: str, one: Unit) -> bool:
    """Whether it is a backend, a part of an id or a shell pattern of one."""
    return (
        one.backend in names.typed_names(pattern)
        or pattern in one.id  # its brackets are none of a shell pattern
        or fnmatchcase(one.id, f"*{pattern}*")
    )


def select(scenario: Scenario, device: str, selection: Selection) -> Units:
    """The selected cases in their groups, walls and studies. Raises NothingSelected."""
    every = planned(scenario, device, selection.attachments)
    whole = every.where(selection.takes)
    if not whole.planned:
        example = next((one.id for one in every.planned), "none")
        raise NothingSelected(
            f"{option('only')} and {option('skip')} leave no case of {scenario.name}; wanted parts"
            f" of case ids such as {example}"
        )
    if (shard := selection.shard) is None:
        return whole
    part = part_of(whole, shard, scenario.plan, device)
    if not part.planned:
        units = len(units_of(whole))
        raise NothingSelected(
            f"{option('shard', shard)}: empty: {scenario.name} splits into {units}"
            f" {'part' if units == 1 else 'parts'}; skip this shard,"
            f" the first {'measures' if units == 1 else f'{units} measure'} all"
        )
    return part._replace(whole=whole)


def refuse_empty(scenario: Scenario, selection: Selection) -> None:
    """Raises NothingSelected if nothing is left, whichever device the scenario is measured on: for
    callers that do not know the device before a worker has started.
    """
    s = selection
    if s.ids is None and not (s.only or s.within or s.skip or s.shard):
        return
    refused: list[NothingSelected] = []
    for device in scenario.devices:
        try:
            select(scenario, device, selection)
            return
        except NothingSelected as error:
            refused.append(error)
    raise refused[0]


def refuse_unmatched(entries: Iterable[tuple[Scenario, Selection]]) -> None:
    """Raises BadInput for a pattern that matches nothing that any of the scenarios plans: a typing
    mistake. `skip` may also name other backends.
    """
    entries = list(entries)
    given = dict.fromkeys(
        (name, pattern)
        for _, one in entries
        for name, patterns in (("only", (*one.only, *one.within)), ("skip", one.skip))
        for pattern in patterns
    )
    if not given:
        return  # a large scenario takes a second to expand
    every = {
        one.id: one
        for scenario, selection in entries
        for device in scenario.devices
        for one in planned(scenario, device, selection.attachments).planned
    }
    for name, pattern in given:
        if not pattern:
            raise BadInput(
                f"{option(name)}: an empty pattern, which matches everything; wanted a backend or a"
                " part of a case's id"
            )
        if any(matching(pattern, one) for one in every.values()) or (
            name == "skip" and names.real_name(pattern) in impls.names()
        ):
            continue
        where = _some(list(dict.fromkeys(scenario.name for scenario, _ in entries)))
        raise BadInput(
            f"{option(name, shown(pattern))}: matches nothing in {where};"
            f" {_instead(name, pattern, every)}"
        )


def _instead(name: str, pattern: str, planned: Mapping[str, Unit]) -> str:
    """What could have been meant by a pattern that matches nothing."""
    parts = [part.strip() for part in pattern.split(",") if part.strip()]
    if len(parts) > 1:
        again = " ".join(option(name, shown(part)) for part in parts)
        return f"give one pattern at a time: {again}"
    known = dict.fromkeys(one.backend for one in planned.values() if one.kind != "study")
    words = dict.fromkeys(part for name in planned for part in name.split("-"))
    close = get_close_matches(pattern, [*known, *words], n=3)
    hint = f"did you mean {' or '.join(dict.fromkeys(close))}? " if close else ""
    backends = f"a backend ({_some(list(known))}) or " if known else ""
    example = next(iter(planned), "none")
    return f"{hint}wanted {backends}a part of a case's id, such as {example}"


def _some(several: Sequence[str]) -> str:
    more = len(several) - MOST_NAMED
    return ", ".join(several[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def planned(scenario: Scenario, device: str, attachments: Sequence[Attachment] = ()) -> Units:
    """All that is planned there.

    Every backend on every problem, neighbours in their group because they share their inputs; every
    backend on every combination of axes whose wall is searched for, each once.
    """
    problem_groups, duplicates = scenario.problem_groups(device)
    groups = []
    for number, problems in enumerate(problem_groups):
        cases = [
            Case(backend=one, problem=problem) for problem in problems for one in scenario.backends
        ]
        groups.append(Group(number=number, cases=tuple(cases)))
    walls: dict[str, Wall] = {}
    for values in scenario.wall_values(device):
        problem, kv_seq_len = Problem(**values), values.get("kv_seq_len")
        for backend in scenario.backends:
            wall = Wall(backend=backend, problem=problem, kv_seq_len=kv_seq_len)
            walls[wall.id] = wall
    every = [problem for group in problem_groups for problem in group]
    studies = studies_of(scenario, every, attachments) if every else ()
    return Units(tuple(groups), tuple(walls.values()), studies, duplicates)


def studies_of(
    scenario: Scenario, problems: Iterable[Problem], attachments: Iterable[Attachment]
) -> tuple[PlannedStudy, ...]:
    """Every part of every study of the scenario and every attachment, on the smallest problem.

    The smallest problem has the fewest pairs, and among equals the most heads. Of a ragged batch
    it is one sequence alone. Studies look at it without what only some backends compute, such as
    sinks.
    """
    single = [
        one for problem in problems for one in (alone(problem) if problem.lengths else [problem])
    ]
    smallest = min(single, key=lambda one: (one.batch * one.seq_len * one.kv_seq_len, -one.heads))
    parts = [(name.partition(":")[0], part) for name in scenario.studies for part in parts_of(name)]
    parts += [(one.study, {takes(one.study): one.name}) for one in attachments]
    studies = [
        PlannedStudy(study=study, problem=replace(smallest, **OPT_IN), part=tuple(part.items()))
        for study, part in parts
    ]
    return tuple({one.id: one for one in studies}.values())


WITH_COLON = re.compile(r"[^\s,=\[\]]+:[^\s,=\[\]]+")


def backends_of_option(text: str) -> tuple[str, set[str]]:
    """`--backends` with `my_module:attend` as the backend attend@my_module, and these names.

    Variants of backends, as sdpa:flash, and what looks like one, stay. Raises BadInput.
    """
    own: set[str] = set()
    known = impls.names()

    def name_of(found: re.Match[str]) -> str:
        family, _, attribute = (text := found[0]).partition(":")
        families = {one.partition(":")[0] for one in known}
        if family in families or get_close_matches(text, known, 1, ALIKE):
            return text
        asked = f"{option('backends')} {text!r}"
        if family.endswith(".py"):
            raise BadInput(
                f"{asked}: a file; wanted its module, {Path(family).stem}:{attribute}, in the"
                " folder where attnbench is started or on PYTHONPATH"
            )
        if (of_user := names.attribute_from_flag(text)) is None:
            raise BadInput(f"{asked}: wanted module:attribute, such as my_attention:attend")
        own.add(of_user.name)
        return of_user.name

    return WITH_COLON.sub(name_of, text), own


def refuse_unknown(backends: Iterable[str]) -> None:
    """Raises EnvironmentUnmet if a backend of a stored run does not exist here any more."""
    for name in dict.fromkeys(backends):
        if names.attribute_from_name(name) is None and unknown(name):
            raise EnvironmentUnmet(
                f"backend {shown(name)} of this run is missing here; set ATTNBENCH_BACKENDS as"
                " before, or install its package; see `attnbench list backends`"
            )


def refuse_imports(backends: Iterable[str], *, allowed: bool) -> None:
    """Raises BadInput if a backend is in a user module, or is downloaded, and `--allow-import` was
    not given.
    """
    asked = [] if allowed else [*backends]
    for kernel in filter(None, map(names.downloaded, asked)):
        raise BadInput(
            f"{shown(kernel)}: workers must download this binary from the Hub and run it; add"
            f" {option('allow_import', True)} if you trust it"
        )
    if attributes := [one for name in asked if (one := names.attribute_from_name(name))]:
        modules = ", ".join(dict.fromkeys(one.module for one in attributes))
        raise BadInput(
            f"{attributes[0].name}: workers must import and run {modules}; add"
            f" {option('allow_import', True)} if you trust that code"
        )
