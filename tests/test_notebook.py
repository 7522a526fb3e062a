"""The notebook in docs/ was run, and its code still runs."""

import json

import matplotlib as mpl
import pytest

from tests.conftest import ROOT

NOTEBOOK = ROOT / "docs" / "analysis.ipynb"


@pytest.fixture(scope="module")
def cells():
    return json.loads(NOTEBOOK.read_text())["cells"]


def test_it_was_run_from_its_first_cell_to_its_last_without_an_error(cells):
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert len(outputs) >= len(code) - 1
    assert not [
        output
        for output in outputs
        if output["output_type"] == "error" or output.get("name") == "stderr"
    ]


def test_its_code_runs(cells, monkeypatch):
    monkeypatch.chdir(NOTEBOOK.parent)
    names: dict[str, object] = {}
    with mpl.rc_context({"backend": "agg"}):
        for cell in cells:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
    assert "frame" in names
