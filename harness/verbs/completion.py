"""What the shell completes: names of scenarios, backends, runs, formats, and values of axes.

Anything may be incomplete or broken while somebody types: then there is nothing to complete.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, get_args

DEVICES = ("auto", "cpu", "cuda")


def matching(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def in_list(names: Iterable[str], incomplete: str) -> list[str]:
    """The last of several names with commas between them."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    return [f"{before}{comma}{name}" for name in matching(names, last) if name not in given]


def scenarios(incomplete: str) -> list[str]:
    from ..scenario.names import shipped

    files = sorted(str(path) for path in Path().glob("*.yaml"))
    return matching([*shipped(), *files], incomplete)


def changes(incomplete: str) -> list[str]:
    """Fields that --set changes, and their values where they are words."""
    from ...impls.problem import AXES
    from ..scenario import Scenario
    from ..scenario.check import MODELS

    path, equals, value = incomplete.partition("=")
    if not equals:
        models = [(".".join(map(str, keys)), one) for keys, one in MODELS.items()]
        below = [f"{place}.{name}" for place, one in models for name in one.model_fields]
        return [f"{one}=" for one in matching([*Scenario.model_fields, *below], path)]
    axis = path.rpartition(".")[2]
    known = {"plan": plans, "device": devices, "backends": backends}
    words = known.get(path) or (values_of(axis) if axis in AXES else None)
    return [f"{path}={one}" for one in words(value)] if words else []


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


def plans(incomplete: str) -> list[str]:
    from ..rows.plans import PLANS

    return matching(PLANS, incomplete)


def measures(incomplete: str) -> list[str]:
    from ..devices.probes import measures as of_probes

    return in_list(("latency", "memory", "graphs", *of_probes()), incomplete)


def devices(incomplete: str) -> list[str]:
    from ..cases.case import VALUE_ALIASES

    return matching([*DEVICES, *VALUE_ALIASES["device"]], incomplete)


def show_formats(incomplete: str) -> list[str]:
    from ...reports.exports import names

    return matching(["html", "md", *names()], incomplete)


def values_of(axis: str) -> Callable[[str], list[str]] | None:
    """Completes the values of an axis; None if it has sizes."""
    from ...impls.problem import AXES

    words = [word for word in get_args(AXES[axis].type) if word]
    return (lambda incomplete: in_list(words, incomplete)) if words else None
