"""attnbench: which attention implementation to use, how long a sequence fits, and whether to believe the answer.

Public names are loaded when first used, so that `import attnbench` imports neither torch nor pandas:

- `load(run)`: a run's rows as one tidy `pandas.DataFrame`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .reports.load import load

__version__ = "0.1.0"
__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    if name == "load":
        from .reports.load import load

        return load
    raise AttributeError(f"module 'attnbench' has no attribute {name!r}")
