"""What is looked at and not timed: properties, copies, maps of attention. A study is one file here;
nothing else is edited to add one.

A study's file defines
    QUESTION   what it answers, in one sentence
    run(problem, device, seed) -> findings

Findings are flat objects of numbers and text, numbers with their unit in the name. `problem` is the
smallest of the run's scenario; a study takes from it what fits, and keeps its own work to a second
or two.
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
    return tuple(
        sorted(
            module.name
            for module in pkgutil.iter_modules(__path__)
            if not module.name.startswith("_")
        )
    )


def load(name: str) -> Study:
    """Raises ModuleNotFoundError for a name that is not in `names`."""
    return cast(Study, importlib.import_module(f"{__name__}.{name}"))
