from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from attnbench.impls import Problem
from attnbench.impls.discovery import registry

FAKE = """
NEEDS = ("no_such_package",)
VARIANTS = ("left", "right")
raise_if_imported = {boom}

def prepare(problem, inputs, weights, *, variant):
    return lambda: inputs.query * (2 if variant == "right" else 1)
"""
MISSING = "needs no_such_package, which is not installed: pip install no_such_package"
PROBLEM = Problem(batch=1, seq_len=2, d_model=4, heads=1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of backends."""
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path))
    return tmp_path


@pytest.fixture
def entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replaces the entry points of all packages; modules may also be in the test's folder."""
    monkeypatch.delenv("ATTNBENCH_BACKENDS", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))

    def replace(*pairs: tuple[str, str], **values: str) -> None:
        points = tuple(
            EntryPoint(name=name, value=value, group=registry.GROUP)
            for name, value in (*pairs, *values.items())
        )
        monkeypatch.setattr(registry, "entry_points", lambda: (points, ()))

    return replace
