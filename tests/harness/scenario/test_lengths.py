"""The forms in which a scenario gives the lengths of a ragged batch."""

from math import log
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario import from_axes, from_mapping
from attnbench.harness.scenario.lengths import packed
from attnbench.harness.scenario.selection import Selection, select
from attnbench.impls.axes.lengths import sequences

GRID: dict[str, Any] = {"d_model": 16, "heads": 2}


def made(grid: dict[str, Any], **more: Any) -> Any:
    data = {"name": "made_up", "question": "Which?", "backends": ["naive"], "grid": GRID | grid}
    return from_mapping(data | more, "a test")


def problems(scenario: Any) -> list[Any]:
    return [case.problem for case in select(scenario, "cpu", Selection()).cases]


@pytest.mark.parametrize(
    ("given", "batches"),
    [
        (["2k", 300, "1k"], ["q2k_q300_q1k"]),
        (300, ["q300"]),
        ("2q2k_32q1s1k", ["2q2k_32q1s1k"]),
        ([["2k", 300], ["1k", "1k"]], ["q2k_q300", "2q1k"]),
        (["q2k", [300, 300]], ["q2k", "2q300"]),
    ],
)
def test_a_list_of_sizes_is_one_batch_and_any_other_list_several(
    given: Any, batches: list[str]
) -> None:
    found = problems(made({"lengths": given}))
    assert [problem.lengths for problem in found] == batches


def test_a_case_with_lengths_takes_no_length_of_the_grid_and_the_other_way_round() -> None:
    ragged, plain = {"lengths": [20, 5]}, {"seq_len": 64}
    found = problems(made(plain, cases=[ragged]))
    assert [(p.lengths, p.seq_len) for p in found] == [("", 64), ("q20_q5", 25)]
    found = problems(made(ragged, cases=[plain]))
    assert [(p.lengths, p.seq_len) for p in found] == [("q20_q5", 25), ("", 64)]


def test_an_option_gives_them_as_a_scenario_does() -> None:
    options = {"backends": "naive", "d_model": "16", "heads": "2", "lengths": "300,2k"}
    assert [problem.lengths for problem in problems(from_axes(options))] == ["q300_q2k"]


def test_a_study_gets_one_sequence_of_a_ragged_batch() -> None:
    scenario = made({"lengths": [20, 5]}, studies=["score_scale"])
    (study,) = select(scenario, "cpu", Selection()).studies
    assert (study.problem.lengths, study.problem.seq_len) == ("", 5)


def test_drawn_lengths_follow_the_distribution_and_the_seed() -> None:
    text = "lognormal:count=2000:mean=1k:sigma=0.8:seed={}"
    one, other = packed(text.format(1)), packed(text.format(2))
    assert packed(text.format(1)) == one != other
    lengths = [sequence.keys for sequence in sequences(one)]
    assert len(lengths) == 2000
    assert mean(lengths) == pytest.approx(1024, rel=0.1)
    assert stdev(map(log, lengths)) == pytest.approx(0.8, rel=0.05)
    assert packed("lognormal:count=3:mean=7:sigma=0:seed=5") == "3q7"


def test_a_file_has_a_length_or_a_part_in_each_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("some.txt").write_text("300\n\n2k\n32q1s1k\n")
    assert packed("file:some.txt") == "q300_q2k_32q1s1k"
    Path("secret.txt").write_text("300\nsecret\n")
    with pytest.raises(ValueError, match=r"^secret.txt:2:1: not a length; wanted") as refused:
        packed("file:secret.txt")
    assert "secret" not in str(refused.value).removeprefix("secret.txt")
    Path("empty.txt").write_text("\n")
    with pytest.raises(ValueError, match="has no lengths"):
        packed("file:empty.txt")


@pytest.mark.parametrize("given", [None, True, "", {}, 1.5, [1.5], [[]], "lognormal:x", "-3"])
def test_what_is_no_batch_is_refused(given: Any) -> None:
    with pytest.raises(BadInput) as refused:
        made({"lengths": given if given is not None else [None]})
    assert all(line.isprintable() for line in refused.value.problems)
