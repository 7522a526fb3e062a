"""attnbench: which attention implementation to use, how long a sequence fits, and whether to
believe the answer.

Public names are loaded when first used, so that `import attnbench` imports neither torch nor
pandas. docs/api.md has examples.

- `run(scenario)`: measure a scenario, or backends on shapes, and get its `Run`; `wall(...)`: the
  longest sequence that fits; `open_run(path)`: a run that was measured before.
- `load(run)`: a run's rows as one tidy `pandas.DataFrame`.
- `advise(model)`, `doctor()`, `gate(base, head)`, `merge(runs)`: what the commands of
  these names print with --json.
- `Refusal`, and its kinds `BadInput` (a ValueError) and `EnvironmentUnmet`: why nothing was
  measured; `BadRun` (a ValueError): a folder that cannot be read as a run.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from .harness.files.errors import BadInput, EnvironmentUnmet, Refusal
    from .harness.verbs.runs import Run, load, open_run
    from .harness.rows.run_files import BadRun

    advise: Callable[..., dict[str, Any]]
    compare: Callable[..., pd.DataFrame]
    doctor: Callable[..., dict[str, Any]]
    gate: Callable[..., dict[str, Any]]
    merge: Callable[..., dict[str, Any]]
    run: Callable[..., Run]
    wall: Callable[..., Run]

__version__ = "0.2.0"
__all__ = [
    "BadInput",
    "BadRun",
    "EnvironmentUnmet",
    "Refusal",
    "Run",
    "__version__",
    "advise",
    "compare",
    "doctor",
    "gate",
    "load",
    "merge",
    "open_run",
    "run",
    "wall",
]

_HOMES = {
    **dict.fromkeys(("Run", "load", "open_run"), "harness.verbs.runs"),
    **dict.fromkeys(("BadInput", "EnvironmentUnmet", "Refusal"), "harness.files.errors"),
    "BadRun": "harness.rows.run_files",
}

_VERBS = {
    **{name: f"harness.verbs.{name}" for name in ("compare", "doctor", "gate", "run", "wall")},
    "list": "harness.verbs.listing",
    "advise": "harness.advise.verb",
    "merge": "harness.fleet.merge_verb",
}

_LINKS = ("harness", "impls", "reports", "scenarios")
"""To the folders of a checkout; installed, they are folders. .package/build_hook.py runs this."""

for _link in _LINKS:
    if not os.path.isdir(f"{os.path.dirname(__file__)}/{_link}"):
        raise ImportError(
            f".package/attnbench/{_link}: found no folder; wanted a symbolic link to one."
            " This checkout or archive has its links as text files: run `git config"
            " core.symlinks true` and then `git checkout -- .package` (on Windows in developer"
            " mode), or install a released wheel"
        )


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in _VERBS:
        return import_module(f"{__name__}.{_VERBS[name]}").VERBS[name].function
    raise AttributeError(f"module 'attnbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
