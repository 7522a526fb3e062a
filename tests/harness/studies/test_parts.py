"""Studies in parts: what a scenario may name and what is planned."""

from math import prod

import pytest

from attnbench.harness.cases.case import PlannedStudy, study_of
from attnbench.harness.files.errors import BadInput
from attnbench.harness.heads.studies.trained_heads import PARTS
from attnbench.harness.scenario import load, read_change
from attnbench.harness.scenario.selection import Selection, select
from attnbench.harness.studies import parts_of, spellings
from attnbench.impls.problem import Problem

SMALL = Problem(batch=1, seq_len=8, d_model=16, heads=2)


def planned(*changes: str, only: tuple[str, ...] = ()) -> list[PlannedStudy]:
    scenario = load("what_heads_learn", [*map(read_change, changes)])
    return list(select(scenario, "cpu", Selection(only=only)).studies)


def test_each_combination_is_planned_with_an_id_of_its_own() -> None:
    found = planned("studies=[trained_heads]")
    assert len(found) == len({one.id for one in found}) == prod(map(len, PARTS.values()))
    assert found[0].id == "study-trained_heads-majority-heads1"
    assert dict(found[0].part) == {"task": "majority", "heads": 1}


def test_one_value_takes_its_parts_and_none_twice() -> None:
    assert {dict(one.part)["task"] for one in planned("studies=[trained_heads:copy]")} == {"copy"}
    both = planned("studies=[trained_heads:copy, trained_heads:8]")
    assert len(both) == len({one.id for one in both}) == 5 + 4 - 1
    assert parts_of("trained_heads:no_such_value") == []
    assert [one.id for one in planned(only=("trained_heads-copy-heads8",))] == [
        "study-trained_heads-copy-heads8"
    ]


def test_a_value_that_no_study_has_is_refused() -> None:
    assert {"trained_heads", "trained_heads:copy", "trained_heads:8"} <= set(spellings())
    with pytest.raises(BadInput, match=r"no study 'trained_heads:cpoy'"):
        planned("studies=[trained_heads:cpoy]")


def test_a_part_is_the_same_after_a_way_through_run_json() -> None:
    for one in (*planned()[:2], PlannedStudy(study="score_scale", problem=SMALL)):
        assert study_of(one.fields()) == one
    assert "part" not in PlannedStudy(study="score_scale", problem=SMALL).fields()
