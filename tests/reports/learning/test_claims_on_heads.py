"""reports/learning/statements.py: verdicts on what heads learn, task by task."""

import re
from typing import Any

import pytest

from attnbench.reports.claims.ledger import Claim, ledger
from tests.reports.fake_trainings import training, trainings

SURE = [0.97, 0.98, 0.99, 0.98, 0.97]
COUNTS = (1, 2, 4, 8, 16, 32, 64)


def claims(findings: list[Any]) -> dict[str, Claim]:
    studied = [{"study": "trained_heads", **one} for one in findings]
    return {one.of.name: one for one in ledger([], {"studies": studied})}


def verdict(name: str, findings: list[Any]) -> str:
    return claims(findings)[name].verdict


def of(task: str, levels: dict[int, float]) -> list[dict[str, Any]]:
    """Five seeds that differ a little, at these accuracies."""
    return trainings(
        {task: {heads: [level - 0.98 + one for one in SURE] for heads, level in levels.items()}}
    )


def with_fields(findings: list[dict[str, Any]], **fields: Any) -> list[dict[str, Any]]:
    return [{**one, **fields} for one in findings]


@pytest.mark.parametrize(
    ("levels", "wanted"),
    [
        ({1: 0.1, 2: 0.4, 4: 0.9, 8: 0.98, 16: 0.98, 32: 0.98, 64: 0.97}, "supported"),
        (dict.fromkeys(COUNTS, 0.98), "refuted"),  # one head is enough
        ({1: 0.1, 2: 0.2, 4: 0.3, 8: 0.4, 16: 0.5, 32: 0.6, 64: 0.98}, "refuted"),
        ({1: 0.1, 8: 0.9}, "not run"),
    ],
)
def test_eight_to_sixteen_are_best_only_if_fewer_are_worse_and_more_not_needed(
    levels: dict[int, float], wanted: str
) -> None:
    assert verdict("Q4", of("copy", levels)) == wanted


def test_one_head_is_judged_on_tasks_of_several_positions_alone() -> None:
    better = {1: 0.3, 8: 0.9}
    assert verdict("Q5", of("six_relations", better)) == "supported"
    assert verdict("Q5", of("two_relations", {1: 0.98, 2: 0.98})) == "refuted"
    assert verdict("Q5", of("recall", better)) == "not run"


@pytest.mark.parametrize(
    ("one_head", "many", "noisy", "wanted"),
    [
        (0.98, 0.98, (0.4, 0.8), "supported"),
        (0.98, 0.98, (0.8, 0.4), "refuted"),
        (0.3, 0.98, (0.2, 0.9), "inconclusive"),  # who knows little has little to lose
        (0.98, 0.98, (0.5, 0.5), "refuted"),  # as sensitive is not less sensitive
    ],
)
def test_noise_is_judged_where_both_are_equally_good(
    one_head: float, many: float, noisy: tuple[float, float], wanted: str
) -> None:
    findings = [
        {**one, "noise_levels_accuracy_ratio": [one["accuracy_ratio"] * share] * 3}
        for heads, level, share in ((1, one_head, noisy[0]), (8, many, noisy[1]))
        for one in of("recall", {heads: level})
    ]
    assert verdict("Q6", findings) == wanted


def test_overfitting_is_judged_on_text_alone() -> None:
    few, many = of("text", {1: 0.9}), of("text", {64: 0.9})
    grown = [*few, *({**one, "seen_loss_nats": one["loss_nats"] - 1} for one in many)]
    assert verdict("Q7", grown) == "supported"
    shrunk = [*({**one, "seen_loss_nats": one["loss_nats"] - 1} for one in few), *many]
    assert verdict("Q7", shrunk) == "refuted"
    assert verdict("Q7", [*few, *many]) == "refuted"  # the same gap
    assert verdict("Q7", [{**one, "task": "copy"} for one in grown]) == "not run"
    assert verdict("Q7", with_fields(grown, seen_loss_nats=None)) == "not run"


def test_training_must_take_heads_apart() -> None:
    apart = with_fields(
        of("copy", {8: 0.9}),
        distance_tokens_before=[[5.0] * 8],
        distance_tokens_after=[[float(head) for head in range(8)]],
    )
    assert verdict("Q1", apart) == "supported"
    together = with_fields(
        apart,
        distance_tokens_before=apart[0]["distance_tokens_after"],
        distance_tokens_after=[[5.0] * 8],
    )
    assert verdict("Q1", together) == "refuted"
    assert verdict("Q1", of("copy", {1: 0.9})) == "not run"


@pytest.mark.parametrize(
    ("bits", "shares", "wanted"),
    [
        ([0.01, 0.01, 0.5, 0.5], [0.1] * 4, "supported"),
        ([0.5] * 4, [0.95, 0.95, 0.1, 0.1], "supported"),
        ([0.5] * 4, [0.1] * 4, "refuted"),
    ],
)
def test_twins_are_alike_in_pattern_or_in_output(
    bits: list[float], shares: list[float], wanted: str
) -> None:
    findings = with_fields(
        of("copy", {4: 0.9}), nearest_difference_after=[bits], nearest_similarity_after=[shares]
    )
    assert verdict("Q2", findings) == wanted


@pytest.mark.parametrize(
    ("single", "wanted"), [([0.11] * 8, "supported"), ([0.9] * 8, "refuted"), (None, "not run")]
)
def test_a_removed_head_is_held_against_all_heads(single: list[float] | None, wanted: str) -> None:
    """The whole model has a loss of 0.1, and one of 1.1 without any head."""
    findings = with_fields(
        of("copy", {8: 0.9}),
        whole_loss_nats=0.1,
        single_loss_nats=None if single is None else [single],
        pruned_loss_nats=[0.1] * 8 + [1.1],
    )
    assert verdict("Q3", findings) == wanted


@pytest.mark.parametrize(
    ("half", "wanted"), [(0.15, "supported"), (0.6, "refuted"), (None, "not run")]
)
@pytest.mark.parametrize("order", ["greedy", "pruned"])
def test_half_of_the_heads_is_held_against_all_heads(
    half: float | None, wanted: str, order: str
) -> None:
    """The whole model has a loss of 0.1, and one of 1.1 without any head."""
    absent = dict.fromkeys(
        f"{name}_{what}" for name in ("greedy", "pruned") for what in ("loss_nats", "removed_heads")
    )
    known = {
        f"{order}_loss_nats": [0.1, half, 1.1],
        f"{order}_removed_heads": [0, 4, 8],
    }
    findings = with_fields(of("copy", {8: 0.9}), **(absent | (known if half else {})))
    assert verdict("Q19", findings) == wanted


def test_rows_that_removed_heads_one_at_a_time_without_saying_so_are_read() -> None:
    findings = with_fields(
        of("copy", {8: 0.9}),
        greedy_loss_nats=None,
        greedy_removed_heads=None,
        pruned_loss_nats=[0.1] * 5 + [0.5] * 3 + [1.1],
        pruned_removed_heads=None,
    )
    assert verdict("Q19", findings) == "supported"


def test_heads_vary_if_they_differ_more_than_each_of_them_does() -> None:
    findings = with_fields(
        of("copy", {4: 0.9}),
        distance_tokens_after=[[0.0, 3.0, 6.0, 9.0]],
        distance_variance_after=[[0.1] * 4],
    )
    assert verdict("Q18", findings) == "supported"
    assert verdict("Q18", with_fields(findings, distance_variance_after=[[99.0] * 4])) == "refuted"


def test_heads_that_do_not_vary_at_all_are_evidence_too() -> None:
    """Two seeds whose heads attend equally far were left out, and the other three supported it."""
    findings = with_fields(of("copy", {4: 0.9}), distance_variance_after=[[0.1] * 4])
    for one, distances in zip(
        findings, ([5.0] * 4, [5.0] * 4, *[[0.0, 3.0, 6.0, 9.0]] * 3), strict=True
    ):
        one["distance_tokens_after"] = [distances]
    (part,) = claims(findings)["Q18"].parts
    assert part.verdict == "inconclusive"
    assert part.numbers.endswith("(d_model 64, 5 seeds)")


def test_seeds_that_lack_what_a_claim_needs_are_not_counted() -> None:
    findings = with_fields(
        of("copy", {8: 0.9}), single_loss_nats=[[0.11] * 8], pruned_loss_nats=[0.1] * 8 + [1.1]
    )
    del findings[0]["single_loss_nats"]
    assert claims(findings)["Q3"].parts[0].numbers.endswith("(d_model 64, 4 seeds)")


def test_too_few_seeds_decide_nothing() -> None:
    for name, claim in claims([training("copy", heads, 0, 0.9) for heads in COUNTS]).items():
        assert claim.verdict in ("not run", "inconclusive", "refuted"), name
    assert claims([training("copy", h, 0, 0.9) for h in COUNTS])["Q1"].verdict == "inconclusive"


def test_a_twin_in_most_seeds_is_not_one_in_every_seed() -> None:
    """The statement says every seed; a mean over seeds is surely above 0 without the first."""
    findings = of("copy", {4: 0.9})
    for one, bits in zip(findings, ([0.5] * 4, *[[0.01] * 4] * 4), strict=True):
        one.update(nearest_difference_after=[bits], nearest_similarity_after=[[0.1] * 4])
    (part,) = claims(findings)["Q2"].parts
    assert part.verdict == "inconclusive"
    assert "4 heads have a twin, some in 4 of 5 seeds" in part.numbers


def test_seeds_are_compared_with_themselves() -> None:
    """Seed 0 lacks the other model; in order of the list each was compared with the next seed."""
    few = [{**one, "seen_loss_nats": one["loss_nats"]} for one in of("text", {1: 0.9})]
    many = [
        {**one, "seen_loss_nats": one["loss_nats"] - 1.0 - one["train_seed"]}
        for one in of("text", {64: 0.9})[1:]
    ]
    (part,) = claims([*few, *many])["Q7"].parts
    assert part.numbers.startswith(
        "new less known text: 0 nats with one head, 3.50 with 64, 3.50 nats ("
    )
    shifted = [{**one, "seen_loss_nats": one["loss_nats"] + one["train_seed"]} for one in few]
    (part,) = claims([*shifted, *many])["Q7"].parts
    assert ", 6.00 nats (" in part.numbers


def test_numbers_that_decide_have_their_interval() -> None:
    fields: dict[str, Any] = {
        "distance_tokens_before": [[5.0] * 8],
        "distance_tokens_after": [[float(head) for head in range(8)]],
        "whole_loss_nats": 0.1,
        "single_loss_nats": [[0.11] * 8],
        "pruned_loss_nats": [0.1] * 8 + [1.1],
        "noise_levels_accuracy_ratio": [0.5] * 3,
    }
    found = claims(with_fields(of("six_relations", {1: 0.98, 8: 0.98}), **fields))
    for name in ("Q1", "Q3", "Q5", "Q6"):
        assert re.search(r"\(-?[\d.]+ to -?[\d.]+\)", found[name].parts[0].numbers), name
