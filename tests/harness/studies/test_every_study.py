"""What every file in harness/studies/ fulfils, and studies in a run."""

from math import prod
from pathlib import Path

import pytest

from attnbench.harness import studies
from tests.conftest import ROOT
from tests.made_runs import read_rows

pytestmark = pytest.mark.long


def test_what_is_declared_without_importing_is_what_the_file_has() -> None:
    for name in studies.names():
        module, declared = studies.load(name), studies.declared(name)
        assert declared.axes == getattr(module, "PARTS", {})
        assert len(declared.parts) == prod(map(len, declared.axes.values()))


def test_a_run_keeps_a_row_per_study_and_goes_on_after_one_that_fails(
    attnbench, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import attnbench.harness.studies as studies\n"
        "def run(problem, device, seed):\n    raise RuntimeError('a bug of the study')\n    yield\n"
        "load = studies.load\n"
        "class Failing:\n    run = staticmethod(run)\n"
        "studies.load = lambda name: Failing if name == 'score_scale' else load(name)\n"
    )
    done = attnbench(
        *("run", "--backends", "sdpa", "--batch", "1", "--seq-len", "32", "--d-model", "32"),
        *("--heads", "2", "--device", "cpu"),
        *("--set", "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}"),
        *("--set", "studies=[score_scale, parameter_count, attention_maps]"),
        env={"PYTHONPATH": f"{folder}:{ROOT / '.package'}"},
    )
    rows = {row["case"]: row for row in read_rows(Path(done.stdout.strip()))}
    failed, counted = rows["study-score_scale"], rows["study-parameter_count"]
    assert (failed["status"], failed["findings"]) == ("error", [])
    assert "a bug of the study" in failed["reason"]
    assert (counted["status"], len(counted["findings"])) == ("ok", 10)
    assert len(rows["study-attention_maps"]["findings"]) == 2  # one per head
    assert "1 case and 3 studies" in done.stderr
    assert "10 findings" in done.stderr
    assert done.returncode == 1
