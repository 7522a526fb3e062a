"""Studies of properties, copies and attention maps, without a measurement of latency.

A study is one file in this folder. It defines
    QUESTION   what it answers, in one sentence
    run(problem, device, seed) -> findings

Findings are flat objects of numbers and text, numbers with their unit in the name. `problem` is the
smallest of the run's scenario; a study uses of it what it needs, and works for a second or two.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    import torch

    from ...impls.problem import Problem


class Study(Protocol):
    QUESTION: str

    def run(
        self, problem: "Problem", device: "torch.device", seed: int
    ) -> Iterator[dict[str, Any]]: ...


def names() -> tuple[str, ...]:
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def load(name: str) -> Study:
    """Raises ModuleNotFoundError for a name that is not in `names`."""
    return cast(Study, importlib.import_module(f"{__name__}.{name}"))
