"""What the workers of a run say of machine and software, compared."""

import platform
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..devices.host import CHOICE
from ..rows.run_files import COMPARED_FACTS

Environment = Mapping[str, Any]
"""The facts that a worker collected."""


class Change(NamedTuple):
    """A fact of the environment that is not as it was when the run began."""

    fact: str
    then: Any
    now: Any


def measured_on(environment: Environment) -> dict[str, str | None]:
    """The fields of a row that say which device of which machine measured it."""
    return {
        "host": platform.node() or None,
        "device_uuid": environment["device_uuid"],
        "device_name": environment["device_name"] or environment["cpu"],
    }


def changes(then: Environment, now: Environment) -> list[Change]:
    """The facts that are not equal, of settings all but which GPU is meant."""

    def value(environment: Environment, fact: str) -> Any:
        found = environment.get(fact)
        if not isinstance(found, Mapping):
            return found
        return {name: one for name, one in found.items() if name != CHOICE}

    values = ((fact, value(then, fact), value(now, fact)) for fact in COMPARED_FACTS)
    return [Change(*one) for one in values if one[1] != one[2]]


def unlike(then: Environment, now: Environment) -> list[Change]:
    """The same, but for which of equal devices they are."""
    return [one for one in changes(then, now) if one.fact != "device_uuid"]
