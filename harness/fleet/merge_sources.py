"""The shards that are merged: are they of one plan and measured alike, and which rows have they?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ..files.errors import BadInput, option, shown
from ..files.printable import visible
from ..rows.record import Status
from ..rows.run_files import META, PLANNED, Document, read_lines, read_meta, shown_path
from ..run.environments import unlike
from ..run.spec import RunSpec

DEVICE_FACTS = ("device_name", "cpu", "cores", "threads")
ALIKE = ("device", "seed", "own_backends")
OF_PART = ("started_utc", "command", "memory_bytes", "environment", "calibration")
"""What a merged run keeps of each shard's run.json."""
WHERE = ("host", "device_uuid", "device_name")
MOST_NAME = 48


# ---- sources -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A shard to merge. `plan`: all cases, walls and studies, also those of other shards, in order.

    `part`: what `merged` of run.json says of it. `spec`: without what is planned.
    """

    path: Path
    spec: RunSpec
    plan: Mapping[str, Sequence[Document]]
    part: Document

    @property
    def name(self) -> str:
        """For a message."""
        return visible(self.path.name)[:MOST_NAME]

    @property
    def number(self) -> int:
        return int(self.part["number"])

    @property
    def of(self) -> int:
        return int(self.part["of"])


def read_sources(paths: Sequence[Path]) -> list[Source]:
    """In the order of their numbers. Raises BadInput unless they can be merged."""
    sources: dict[int, Source] = {}
    for path in paths:
        one = read_source(path)
        first = next(iter(sources.values()), one)
        if one.plan == first.plan:  # kept once: a thousand copies would not fit
            one = replace(one, plan=first.plan)
        _refuse_unlike(first, one)
        if (known := sources.setdefault(one.number, one)) is not one:
            raise BadInput(
                f"{known.name} and {one.name}: both are shard {one.number}/{one.of}; give one of"
                " them"
            )
    return [sources[number] for number in sorted(sources)]


def read_source(path: Path) -> Source:
    """Raises BadInput if it is no shard."""
    meta, where = read_meta(path), shown_path(path / META)
    if "merged" in meta:
        raise BadInput(f"{where}: made by merging already; give the shards that it was made of")
    if "shard" not in meta:
        raise BadInput(
            f"{where}: not a shard; wanted runs of `attnbench run SCENARIO --shard 1/2`, 2/2 and so"
            " on"
        )
    try:
        spec = RunSpec.stored(meta)
        shard = spec.shard
        assert shard is not None
        datetime.fromisoformat(spec.started_utc)
        plan = {
            name: _whole(getattr(spec, name), shard.elsewhere.get(name, ())) for name in PLANNED
        }
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"{where}: not readable as a shard ({error}); wanted what `attnbench run --shard`"
            " writes; measure it again"
        ) from None
    part = {
        "run": meta["run"],
        "number": shard.number,
        "of": shard.of,
        **{name: getattr(spec, name) for name in OF_PART},
    }
    unplanned = spec.model_copy(update={**{name: [] for name in PLANNED}, "shard": None})
    return Source(path=path, spec=unplanned, plan=plan, part=part)


def _refuse_unlike(one: Source, two: Source) -> None:
    """Raises BadInput unless both are shards of one plan, measured alike on devices of one kind."""
    both = f"{one.name} and {two.name}"
    for place, then, now in _plan_differences(one, two):
        raise BadInput(
            f"{both}: shards of different plans ({place}: {shown(then)} and {shown(now)});"
            f" wanted shards of one scenario, with the same options and {option('seed')}"
        )
    for found in unlike(one.spec.environment, two.spec.environment):
        on_device = found.fact in DEVICE_FACTS
        what = "on different devices" if on_device else "in different environments"
        raise BadInput(
            f"{both}: measured {what} ({found.fact}: {_short(found.then)} and"
            f" {_short(found.now)}); their rows are not comparable: measure one of them again"
            " where the other was measured"
        )


def _plan_differences(one: Source, two: Source) -> Iterator[tuple[str, Any, Any]]:
    """By place; numbers of cases before the cases themselves."""
    yield from _differences("", _planned(one), _planned(two))
    for name in PLANNED:
        if one.plan[name] != two.plan[name]:  # of a thousand shards few are walked through
            for then, now in zip(one.plan[name], two.plan[name], strict=True):
                yield from _differences(name, then, now)


def _planned(one: Source) -> Document:
    return {
        **{name: getattr(one.spec, name) for name in ALIKE},
        "scenario": {**one.spec.scenario, "source": None},
        "number of shards": one.of,
        **{name: len(one.plan[name]) for name in PLANNED},
    }


def _differences(place: str, one: Any, two: Any) -> Iterator[tuple[str, Any, Any]]:
    """The places at which two values of JSON are not equal."""
    if isinstance(one, dict) and isinstance(two, dict):
        for name in {**one, **two}:
            where = f"{place}.{name}" if place else name
            yield from _differences(where, one.get(name), two.get(name))
    elif one != two:
        a, b = (str(value) if isinstance(value, list) else value for value in (one, two))
        yield place, a, b


def _whole(own: Sequence[Document], elsewhere: Sequence[Document]) -> list[Document]:
    """In the order of the plan: by group, or by place."""
    planned = sorted([*own, *elsewhere], key=lambda one: one.get("place", one.get("group", 0)))
    if len({one["case"] for one in planned}) < len(planned):
        raise ValueError("a case is planned twice")
    return [{name: one[name] for name in one if name != "place"} for one in planned]


def _short(value: Any) -> str:
    return visible(str(value))[:60]


# ---- rows ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Rows:
    """`lines`: those of each case, in order of their attempts; `statuses`: of the rows that count;
    `devices`: which of them measured something; `notes`: torn lines that were left out.
    """

    lines: dict[str, list[bytes]] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    devices: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def in_order(self, plan: Mapping[str, Sequence[Document]]) -> Iterator[bytes]:
        """By the plan, whichever shard they are from; what is not in it comes last."""
        planned = planned_in(plan)
        others = sorted(self.lines.keys() - set(planned))
        return (line for case in (*planned, *others) for line in self.lines.get(case, ()))

    def unfinished(self, plan: Mapping[str, Sequence[Document]]) -> list[str]:
        """What has no row, or was interrupted, in the order of the plan."""
        left = Status.INTERRUPTED
        return [one for one in planned_in(plan) if self.statuses.get(one, left) == left]


def planned_in(plan: Mapping[str, Sequence[Document]]) -> list[str]:
    return [one["case"] for name in PLANNED for one in plan[name]]


def read_all(sources: Sequence[Source]) -> Rows:
    """The rows of all shards. Raises BadInput if two measured one case."""
    rows = Rows()
    whose: dict[str, Source] = {}
    for source in sources:
        notes: list[str] = []
        for line, row in read_lines(source.path, notes):
            case = row["case"]
            if (known := whose.setdefault(case, source)) is not source:
                raise BadInput(
                    f"{known.name} and {source.name}: both measured {visible(case)}; measure one of"
                    " them again"
                )
            rows.lines.setdefault(case, []).append(line)
            rows.statuses[case] = str(row.get("status"))
            where = {name: row.get(name) for name in WHERE}
            if any(where.values()) and where not in rows.devices:
                rows.devices.append(where)
        rows.notes += [f"{source.name}: {note}" for note in notes]
    return rows
