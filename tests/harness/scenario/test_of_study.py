"""attnbench run NAME of a study: the scenario that it is, and what is refused."""

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario import Entry, load_entries, read_change
from attnbench.harness.scenario.selection import Selection, select
from attnbench.harness.studies import declared, names

MINE = """\
name: mine
question: Mine?
backends: naive
grid: {batch: 1, seq_len: 8, d_model: 8, heads: 1}
"""


def entry(name: str, *changes: str) -> Entry:
    (found,) = load_entries(name, [*map(read_change, changes)]).entries
    return found


@pytest.mark.parametrize("name", [one for one in names() if one != "generation"])
def test_a_study_alone_is_all_that_is_measured(name: str) -> None:
    found = entry(name)
    units = select(found.scenario, "cpu", Selection(only=found.only))
    assert {one.study for one in units.studies} == {name}
    assert units.planned == [*units.studies]
    assert (found.scenario.name, found.scenario.question) == (name, declared(name).question)


def test_a_scenario_goes_before_the_study_of_its_name_and_a_file_too(tmp_path, monkeypatch) -> None:
    assert entry("generation").only == ()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "score_scale").write_text(MINE)
    assert entry("score_scale").scenario.name == "mine"


def test_its_problem_can_be_changed_and_one_part_be_named() -> None:
    found = entry("batch_invariance:2", "grid.dtype=bf16")
    (study,) = select(found.scenario, "cpu", Selection(only=found.only)).studies
    assert (study.problem.dtype, dict(study.part)) == ("bf16", {"process": 2})


def test_mistakes_are_one_line() -> None:
    with pytest.raises(BadInput, match=r"no scenario 'score_scael'; did you mean score_scale\?"):
        load_entries("score_scael")
    with pytest.raises(
        BadInput, match=r"grid\.head: not a field of a scenario; did you mean grid\.heads"
    ):
        entry("score_scale", "grid.head=3")
