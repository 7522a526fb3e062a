"""Suite files: what they mean, and that every mistake is named where it stands."""

from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario import Entry, load, load_entries, read_change
from attnbench.harness.scenario.selection import Selection, select
from attnbench.harness.studies import declared, names

GOOD = """\
name: mine
question: Which?
backends: [naive, fused]
grid: {seq_len: 64, d_model: 32, heads: 2}
"""


@pytest.fixture(autouse=True)
def in_a_folder_with_a_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(GOOD, encoding="utf-8")


def refusal(text: str, *changes: str) -> list[str]:
    Path("s.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        load_entries("s.yaml", changes)
    return list(caught.value.problems)


def test_an_entry_is_a_name_a_file_or_a_mapping_with_changes() -> None:
    changes = "{grid.N: [32, 48], limits.memory_gib: 2}, only: fused, skip: [n32, naive]"
    changed = f"{{scenario: mine.yaml, set: {changes}, plan: quick}}"
    Path("s.yaml").write_text(f"- quickstart\n- mine.yaml\n- {changed}\n", encoding="utf-8")
    file = load_entries("s.yaml")
    assert file.is_list
    first, plain, third = file.entries
    assert first.scenario.resolved("cpu") == load("quickstart").resolved("cpu")
    assert plain.scenario.resolved("cpu") == load("mine.yaml").resolved("cpu")
    assert (plain.only, plain.skip) == ((), ())
    assert third.scenario.axes("cpu")["seq_len"] == (32, 48)
    assert third.scenario.limits.memory_gib == 2
    assert third.scenario.plan.like == "quick"
    assert (third.only, third.skip) == (("fused",), ("n32", "naive"))


REFUSALS = {
    "- quickstrat\n": "s.yaml:1:3: no scenario 'quickstrat'; did you mean quickstart?",
    "- mine.yaml\n- absent.yaml\n": "s.yaml:2:3: 'absent.yaml': no such file; wanted",
    "- 5\n": "s.yaml:1:3: found 5; wanted a scenario, such as",
    "- [quickstart]\n": "s.yaml:1:3: found a list of 1; wanted a scenario",
    "[]\n": "s.yaml:1:1: found an empty list; wanted 1 to",
    "- {plan: quick}\n": "s.yaml:1:3: [0].scenario: missing; wanted: a scenario's name",
    "- scenario: mine.yaml\n  onyl: fused\n": (
        "s.yaml:2:3: [0].onyl: not a field of a suite's entry; did you mean [0].only?"
    ),
    "- scenario: mine.yaml\n  only: [3]\n": "s.yaml:2:10: [0].only[0]: found 3; wanted text",
    "- scenario: mine.yaml\n  set: 3\n": "s.yaml:2:8: [0].set: found 3; wanted a mapping",
    "- scenario: mine.yaml\n  set: {grid.head: 4}\n": (
        "s.yaml:2:20: grid.head: not a field of a scenario; did you mean grid.heads?"
    ),
    "- scenario: mine.yaml\n  set: {grid.heads: [2, 3]}\n": "s.yaml:2:25: grid.heads[1]: ",
    "- scenario: mine.yaml\n  set: {backends: [fused, nave]}\n": (
        "s.yaml:2:27: backends[1]: no backend 'nave'; did you mean naive?"
    ),
    "- scenario: mine.yaml\n  set: {name.x: 4}\n": (
        "s.yaml:2:17: name has no fields of its own; wanted one value for all of it; use name=..."
    ),
    "- scenario: mine.yaml\n  set: {.x: 4}\n": "s.yaml:2:13: '.x': not a field; wanted a path",
    "- scenario: mine.yaml\n  plan: quikc\n": (
        "s.yaml:2:9: plan: found 'quikc'; did you mean quick? wanted quick, standard or rigorous"
    ),
    "- scenario: mine.yaml\n  scenario: mine.yaml\n": "s.yaml:2:3: key 'scenario' given twice",
    "- s.yaml\n": "s.yaml:1:3: 's.yaml' is a suite itself; wanted a scenario",
    "- !!str mine.yaml\n": "s.yaml:1:3: tag",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_a_mistake_is_named_where_it_stands(text: str) -> None:
    (problem,) = refusal(text)
    assert problem.startswith(REFUSALS[text]), problem
    assert "\n" not in problem


# ---- attnbench run NAME of a study ---------------------------------------------------------------

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
