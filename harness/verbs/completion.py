"""What the shell completes: names of scenarios, backends, runs, formats, and values of axes.

Anything may be incomplete or broken while somebody types: then there is nothing to complete.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

Complete = Callable[[str], list[str]]


def matching(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def in_list(names: Iterable[str], incomplete: str) -> list[str]:
    """The last of several names with commas between them."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    return [f"{before}{comma}{name}" for name in matching(names, last) if name not in given]


def words(
    known: Sequence[str], choose: Callable[[Sequence[str], str], list[str]] = matching
) -> Complete | None:
    """Completes one of them, or with `in_list` several; None if there are none."""
    return (lambda incomplete: choose(known, incomplete)) if known else None


def scenarios(incomplete: str) -> list[str]:
    from ..scenario.names import shipped
    from ..studies import names

    files = sorted(str(path) for path in Path().glob("*.yaml"))
    return matching([*shipped(), *names(), *files], incomplete)


def changes(incomplete: str) -> list[str]:
    """Fields that --set changes, and their values where they are words."""
    from ..rows.plans import PLANS
    from ..scenario import Scenario
    from ..scenario.check import MODELS

    path, equals, value = incomplete.partition("=")
    if not equals:
        models = [(".".join(map(str, keys)), one) for keys, one in MODELS.items()]
        below = [f"{place}.{name}" for place, one in models for name in one.model_fields]
        return [f"{one}=" for one in matching([*Scenario.model_fields, *below], path)]
    axis = path.rpartition(".")[2]
    devices = get_args(Scenario.model_fields["device"].annotation)
    known = {"plan": words([*PLANS]), "device": words(devices), "backends": backends}
    complete = known.get(path) or values_of(axis)
    return [f"{path}={one}" for one in complete(value)] if complete else []


def models(incomplete: str) -> list[str]:
    from ..models.config_file import shipped

    return matching(shipped(), incomplete)


def backend_names() -> list[str]:
    from ...impls import BadBackend, names
    from ...impls.discovery.names import ALIASES

    try:
        return [*names(), *ALIASES]
    except BadBackend:
        return []


def backends(incomplete: str) -> list[str]:
    return in_list(backend_names(), incomplete)


def one_backend(incomplete: str) -> list[str]:
    return matching(backend_names(), incomplete)


def runs(ctx: Any, incomplete: str) -> list[str]:
    """Under --runs, if that was given before."""
    from ..rows.names import run_names

    return matching(run_names(Path(ctx.params.get("runs") or "results")), incomplete)


def measures(incomplete: str) -> list[str]:
    from ..devices.probes import measures as of_probes

    return in_list(("latency", "memory", "graphs", *of_probes()), incomplete)


def show_formats(incomplete: str) -> list[str]:
    from ...reports.exports import names

    return matching(["html", "md", *names()], incomplete)


def values_of(name: str) -> Complete | None:
    """Completes the values of an axis; None if it has sizes, or is none."""
    from ...impls.problem import AXES

    known = get_args(AXES[name].type) if name in AXES else ()
    return words([*filter(None, known)], in_list)
