"""The plan as it stands in run.json: of a whole run, or of one shard and what is elsewhere."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..cases.case import Group
from ..scenario.selection import SelectedCases
from ..scenario.shards import Shard


def planned_fields(selected: SelectedCases, shard: Shard | None) -> dict[str, Any]:
    """`cases`, `walls` and `studies`; in a shard also `shard`, with those of the other shards.

    In a shard each wall and study has its `place` in the whole plan; cases have their `group`.
    """
    whole = selected.whole
    plan = {
        "cases": _cases(whole.groups),
        "walls": [wall.fields() for wall in whole.walls],
        "studies": [study.fields() for study in whole.studies],
    }
    if shard is None:
        return plan
    for name in ("walls", "studies"):
        plan[name] = [{"place": place, **one} for place, one in enumerate(plan[name])]
    own = set(selected.units.ids)
    elsewhere = {
        name: [one for one in planned if one["case"] not in own] for name, planned in plan.items()
    }
    return {
        **{name: [one for one in planned if one["case"] in own] for name, planned in plan.items()},
        "shard": {"number": shard.number, "of": shard.of, "elsewhere": elsewhere},
    }


def wall_share(meta: Mapping[str, Any]) -> float:
    """How much of the time for walls this run has: a shard's walls get what they get in one run."""
    shard, own = meta.get("shard"), len(meta.get("walls") or ())
    elsewhere = len(shard["elsewhere"]["walls"]) if shard else 0
    return own / (own + elsewhere) if elsewhere else 1.0


def _cases(groups: Iterable[Group]) -> list[dict[str, Any]]:
    return [{**group.fields(), **case.fields()} for group in groups for case in group.cases]
