"""A section on a study that failed says why."""

from pathlib import Path

import pytest

from attnbench.reports.sections import attention_maps, generation, worked_example
from tests.reports.fake_studies import with_study
from tests.reports.rendering import blocks_of, sentences


@pytest.mark.parametrize("section", [attention_maps, generation, worked_example])
def test_a_failed_study_has_its_reason(tmp_path: Path, section) -> None:
    study = section.__name__.rpartition(".")[2]
    run = with_study(tmp_path, study, [], status="error", reason="RuntimeError: a bug")
    (only,) = sentences(blocks_of(section, run))
    assert "RuntimeError: a bug" in only
