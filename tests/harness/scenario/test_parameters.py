"""Parameters of backends in scenarios, from a file or the command line to cases and rows."""

from pathlib import Path

import pytest

from attnbench.harness.cases.case import case_of
from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario import from_axes, load
from attnbench.harness.scenario.selection import Selection, select

NAMES = ("fused", "linformer[rank=16]", "linformer[rank=32]")
SHAPE = {"seq_len": "64", "d_model": "32", "heads": "2"}
HEAD = "name: a\nquestion: b?\ngrid: {seq_len: 64, d_model: 32, heads: 2}\n"


@pytest.mark.parametrize(
    "given", ['["fused", "linformer[rank=16,32]"]', "\n- fused\n- linformer[rank=16,32]"]
)
def test_several_values_are_several_backends_in_a_file(tmp_path: Path, given: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"{HEAD}backends: {given}\nbaseline: linformer[rank=16]\n")
    assert load(file).backends == NAMES


def test_they_are_told_apart_in_cases_and_can_be_selected() -> None:
    scenario = from_axes({**SHAPE, "backends": "fused,linformer[rank=16,32]"})
    assert scenario.backends == NAMES
    cases = select(scenario, "cpu", Selection()).cases
    assert [case.fields().get("parameters") for case in cases] == [None, {"rank": 16}, {"rank": 32}]
    assert cases[1].id == "linformer[rank=16]-b1-n64-d32-h2-fp32-forward-core"
    assert [case_of(case.fields()) for case in cases] == cases
    for pattern in ("linformer[rank=32]", "[rank=32]-b1", cases[2].id):
        assert select(scenario, "cpu", Selection(only=(pattern,))).cases == [cases[2]]


def test_what_a_backend_does_not_take_is_refused_at_its_place() -> None:
    with pytest.raises(BadInput) as refused:
        from_axes({**SHAPE, "backends": "naive,linformer[depth=2]"})
    assert "no parameter 'depth'; there are: rank (int)" in str(refused.value)
    assert "\n" not in str(refused.value)
