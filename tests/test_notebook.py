"""The notebook in docs/ shows what its code gives for the kept run, by public names only."""

import ast
import json
import runpy
from typing import Any

import pandas as pd
import pytest

from tests.conftest import ROOT

NOTEBOOK = ROOT / "docs" / "analysis.ipynb"


@pytest.fixture(scope="module")
def cells() -> list[dict[str, Any]]:
    return json.loads(NOTEBOOK.read_text())["cells"]


def texts(cells: list[dict[str, Any]]) -> list[str]:
    """What was printed; not what was drawn, which differs between fonts."""
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    return ["".join(one.get("text") or one["data"].get("text/plain", "")) for one in outputs]


@pytest.mark.skipif(int(pd.__version__.split(".")[0]) < 3, reason="pandas 2 wraps frames otherwise")
@pytest.mark.parametrize("folder", ["docs", "."])
def test_its_outputs_are_those_of_its_code_now(
    cells: list[dict[str, Any]], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT / folder)
    made = runpy.run_path(str(ROOT / "docs" / "notebook.py"))["executed"](cells)
    assert texts(made) == texts(cells), "make pictures"
    assert len(texts(cells)) >= 6


def test_it_uses_public_names_only(cells: list[dict[str, Any]]) -> None:
    code = "\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "code")
    imported = [one for one in ast.walk(ast.parse(code)) if isinstance(one, ast.ImportFrom)]
    assert not [one.module for one in imported if "attnbench" in (one.module or "")]
    assert "import attnbench\n" in code
