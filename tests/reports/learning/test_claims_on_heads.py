"""reports/learning/statements.py: verdicts on what heads learn, task by task."""

from typing import Any

import pytest

from tests.reports.fake_claims import claims
from tests.reports.fake_trainings import N, learning, training, trainings

SURE = [0.97, 0.98, 0.99, 0.98, 0.97]
COUNTS = (1, 2, 4, 8, 16, 64)
APART, EQUAL = [[float(head) for head in range(8)]], [[5.0] * 8]
ORDERS = {"greedy_loss_nats", "greedy_removed_heads", "pruned_loss_nats", "pruned_removed_heads"}


def of(task: str, levels: dict[int, float], **fields: Any) -> list[dict[str, Any]]:
    """Five seeds that differ a little, at these accuracies."""
    found = trainings(
        {task: {heads: [level - 0.98 + one for one in SURE] for heads, level in levels.items()}}
    )
    return [{**one, **fields} for one in found]


def noisy(one_head: float, many: float, shares: tuple[float, float]) -> list[dict[str, Any]]:
    return [
        {**one, "noise_levels_accuracy_ratio": [one["accuracy_ratio"] * share] * 3}
        for heads, level, share in ((1, one_head, shares[0]), (8, many, shares[1]))
        for one in of("recall", {heads: level})
    ]


def known(task: str, few: float, many: float) -> list[dict[str, Any]]:
    """So much is the loss on known text below that on new text, with 1 and 64 heads."""
    return [
        {**one, "seen_loss_nats": one["loss_nats"] - less}
        for heads, less in ((1, few), (64, many))
        for one in of(task, {heads: 0.9})
    ]


def nearest(bits: list[float], shares: list[float]) -> list[dict[str, Any]]:
    found = {"nearest_difference_after": [bits], "nearest_similarity_after": [shares]}
    return of("copy", {4: 0.9}, **found)


def removed(**fields: Any) -> list[dict[str, Any]]:
    """The whole model has a loss of 0.1, and one of 1.1 without any head."""
    return of("copy", {8: 0.9}, **{"whole_loss_nats": 0.1, **fields})


def in_order(order: str, losses: Any, heads: Any) -> list[dict[str, Any]]:
    """Earlier rows have one order, and do not say that heads were removed one at a time."""
    told = {f"{order}_loss_nats": losses, f"{order}_removed_heads": heads}
    return removed(**dict.fromkeys(ORDERS) | told)


ALL = {"pruned_loss_nats": [0.1] * 8 + [1.1]}
EVEN = (N - 1) / 4  # mean distance of even weights
IS = "distance_tokens_after"
WITHIN = "distance_variance_after"


def heads_at(nearest: float, farthest: float, bits: float = 0.6) -> list[dict[str, Any]]:
    """8 heads at these mean distances, over that of even weights; before, 0.1 bits apart."""
    distances = [nearest * EVEN] + [farthest * EVEN] * 7
    return of("copy", {8: 0.9}, **{IS: [distances], "pattern_difference_after": [[bits] * 8]})


def steps(task: str = "copy", **by_heads: list[int | None]) -> list[dict[str, Any]]:
    """Six seeds each; `h1=[...]`: with one head."""
    return learning(task, {int(heads[1:]): some for heads, some in by_heads.items()})


NEVER: list[int | None] = [None] * 6
ONCE: list[int | None] = [None] * 5 + [900]


def at(count: int) -> list[int | None]:
    return [count] * 6


JUDGED: list[tuple[str, str, list[dict[str, Any]], str]] = [
    ("Q1", "near and far", heads_at(0.3, 1.5), "supported"),
    ("Q1", "all near", heads_at(0.3, 0.8), "refuted"),
    ("Q1", "none near", heads_at(0.8, 1.5), "refuted"),
    ("Q1", "more alike than before", heads_at(0.3, 1.5, bits=0.05), "refuted"),
    ("Q1", "one head", of("copy", {1: 0.9}), "not run"),
    ("Q2", "maps", nearest([0.01, 0.01, 0.5, 0.5], [0.1] * 4), "supported"),
    ("Q2", "outputs", nearest([0.5] * 4, [0.95, 0.95, 0.1, 0.1]), "supported"),
    ("Q2", "none", nearest([0.5] * 4, [0.1] * 4), "refuted"),
    ("Q3", "little", removed(single_loss_nats=[[0.11] * 8], **ALL), "supported"),
    ("Q3", "much", removed(single_loss_nats=[[0.9] * 8], **ALL), "refuted"),
    ("Q3", "unknown", removed(single_loss_nats=None, **ALL), "not run"),
    (
        *("Q4", "few never learn"),
        steps(h1=NEVER, h2=NEVER, h8=at(100), h16=at(90), h64=at(100)),
        "supported",
    ),
    (
        *("Q4", "one learns, slowly"),
        steps(h1=at(900), h2=NEVER, h8=at(100), h16=at(90), h64=at(100)),
        "refuted",
    ),
    ("Q4", "one in six", steps(h1=ONCE, h2=NEVER, h8=at(100), h64=at(100)), "not decided"),
    ("Q4", "most are faster", steps(h1=NEVER, h2=NEVER, h8=at(100), h64=at(50)), "refuted"),
    ("Q4", "a little faster", steps(h1=NEVER, h2=NEVER, h8=at(100), h64=at(90)), "supported"),
    ("Q4", "two numbers", steps(h1=NEVER, h8=at(100)), "not run"),
    ("Q4", "equal steps", of("copy", dict.fromkeys(COUNTS, 0.98)), "not run"),
    ("Q5", "never", steps("six_relations", h1=NEVER, h8=at(100)), "supported"),
    ("Q5", "one seed learns", steps("six_relations", h1=ONCE, h8=at(100)), "refuted"),
    ("Q5", "nobody", steps("six_relations", h1=NEVER, h8=NEVER), "not decided"),
    ("Q5", "two", steps("two_relations", h1=at(200), h2=at(100)), "refuted"),
    ("Q5", "one position", steps("recall", h1=NEVER, h8=at(100)), "not run"),
    ("Q5", "equal steps", of("six_relations", {1: 0.3, 8: 0.9}), "not run"),
    ("Q6", "less", noisy(0.98, 0.98, (0.4, 0.8)), "supported"),
    ("Q6", "more", noisy(0.98, 0.98, (0.8, 0.4)), "refuted"),
    ("Q6", "who knows little has little to lose", noisy(0.3, 0.98, (0.2, 0.9)), "not run"),
    ("Q6", "as sensitive is not less", noisy(0.98, 0.98, (0.5, 0.5)), "refuted"),
    ("Q7", "grows", known("short_text", 0.01, 1.0), "supported"),
    ("Q7", "shrinks", known("short_text", 1.0, 0.01), "refuted"),
    ("Q7", "the same", known("short_text", 0.5, 0.51), "refuted"),
    ("Q7", "nobody overfits", known("short_text", 0.01, 0.01), "not decided"),
    ("Q7", "few passes", known("text", 0.01, 1.0), "not run"),
    ("Q7", "unknown", of("short_text", {1: 0.9, 64: 0.9}, seen_loss_nats=None), "not run"),
    ("Q18", "apart", of("copy", {8: 0.9}, **{IS: APART, WITHIN: [[0.1] * 8]}), "supported"),
    ("Q18", "within", of("copy", {8: 0.9}, **{IS: APART, WITHIN: [[99.0] * 8]}), "refuted"),
    *(
        ("Q19", f"{order} {loss}", in_order(order, [0.1, loss, 0.9, 1.1], [0, 3, 4, 8]), wanted)
        for order in ("greedy", "pruned")
        for loss, wanted in ((0.15, "supported"), (0.6, "refuted"))
    ),
    ("Q19", "unknown", in_order("greedy", None, None), "not run"),
    ("Q19", "none so few", in_order("greedy", [0.1, 0.1, 1.1], [0, 4, 8]), "not run"),
    ("Q19", "singly", in_order("pruned", [0.1] * 4 + [0.9] * 4 + [1.1], None), "supported"),
]


@pytest.mark.parametrize(
    ("name", "findings", "wanted"),
    [pytest.param(name, found, wanted, id=f"{name} {id_}") for name, id_, found, wanted in JUDGED],
)
def test_a_known_truth_is_the_verdict(
    name: str, findings: list[dict[str, Any]], wanted: str
) -> None:
    assert claims(findings)[name].verdict == wanted


def test_heads_that_do_not_vary_at_all_are_evidence_too() -> None:
    """Two seeds whose heads attend equally far were left out, and the other three supported it."""
    findings = of("copy", {8: 0.9}, **{WITHIN: [[0.1] * 8], IS: APART})
    for one in findings[:2]:
        one[IS] = EQUAL
    (part,) = claims(findings)["Q18"].parts
    assert part.verdict == "not decided"
    assert "(d_model 64, 5 seeds); about 4 times as many seeds" in part.numbers


def test_seeds_that_lack_what_a_claim_needs_are_not_counted() -> None:
    findings = removed(single_loss_nats=[[0.11] * 8], **ALL)
    del findings[0]["single_loss_nats"]
    assert claims(findings)["Q3"].parts[0].numbers.endswith("(d_model 64, 4 seeds)")


def test_too_few_seeds_decide_nothing() -> None:
    found = claims([training("copy", heads, 0, 0.9) for heads in COUNTS])
    for name, claim in found.items():
        assert claim.verdict in ("not run", "not decided", "refuted"), name
    assert found["Q1"].verdict == "not decided"


def test_a_twin_in_most_seeds_is_not_one_in_every_seed() -> None:
    """The statement says every seed; a mean over seeds is surely above 0 without the first."""
    findings = of("copy", {4: 0.9}, nearest_similarity_after=[[0.1] * 4])
    for one, bits in zip(findings, (0.5, *[0.01] * 4), strict=True):
        one["nearest_difference_after"] = [[bits] * 4]
    (part,) = claims(findings)["Q2"].parts
    assert part.verdict == "not decided"
    assert "4 heads have a twin, some in 4 of 5 seeds" in part.numbers


def test_seeds_are_compared_with_themselves() -> None:
    """Seed 0 lacks the other model; in order of the list each was compared with the next seed."""
    few, many = of("short_text", {1: 0.9}), of("short_text", {64: 0.9})[1:]
    for one in few:
        one["seen_loss_nats"] = one["loss_nats"] + one["train_seed"]
    for one in many:
        one["seen_loss_nats"] = one["loss_nats"] - 1.0 - one["train_seed"]
    (part,) = claims([*few, *many])["Q7"].parts
    assert ", 6.00 (" in part.numbers
