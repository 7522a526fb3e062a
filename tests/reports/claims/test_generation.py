"""reports/claims/studies.py: what a cache saves, by FLOPs and by time."""

from typing import Any

from attnbench.reports.claims.ledger import ledger
from attnbench.reports.claims.verdict import Evidence
from attnbench.reports.data.generation import VALUES
from tests.reports import fake_claims
from tests.reports.subjects.test_generation import finding

FLOPS, FUSED = "FLOPs", "time, fused"


def parts(*findings: Any) -> dict[str, Evidence]:
    found = [one if isinstance(one, str) else {"study": "generation", **one} for one in findings]
    return fake_claims.parts("Q16", found)


def over(tokens: int, ratio: float, reach: float = 1.01, **more: Any) -> dict[str, Any]:
    """Time of all tokens without a cache over that with one."""
    name = "full_over_cached_total"
    bounds = {f"{name}_low_ratio": ratio / reach, f"{name}_high_ratio": ratio * reach}
    return finding("fused", tokens, **{f"{name}_ratio": ratio, **bounds, **more})


def test_a_cache_saves_flops_and_time_at_the_most_tokens() -> None:
    found = parts(over(256, 0.5), over(512, 3.0))
    assert {of: part.verdict for of, part in found.items()} == {
        FLOPS: "supported",
        FUSED: "supported",
    }
    assert "without a cache 512 times those with it for 512 tokens" in found[FLOPS].numbers
    assert "they grow as T^3.0, with it as T^2.0" in found[FLOPS].numbers
    low, high = 3.0 / 1.01 / 1.3, 3.0 * 1.01 * 1.3
    assert f"512 tokens without a cache take 3.00 times ({low:.2f} to {high:.2f}) the time" in (
        found[FUSED].numbers
    )
    assert "which allows for the 30 % that processes may differ" in found[FUSED].numbers
    assert found[FUSED].numbers.endswith("but 256 tokens take less")


def test_where_generating_with_a_cache_takes_longer_the_claim_is_refuted() -> None:
    assert parts(over(256, 3.0), over(512, 0.5))[FUSED].verdict == "refuted"


def test_a_ratio_within_what_processes_differ_decides_nothing() -> None:
    assert parts(over(512, 1.2))[FUSED].verdict == "inconclusive"
    assert parts(over(512, 3.0, reach=10.0))[FUSED].verdict == "inconclusive"
    ends = {f"full_over_cached_total_{end}_ratio": None for end in ("low", "high")}
    assert parts(over(512, 3.0, **ends))[FUSED].verdict == "inconclusive"


def test_disturbed_sequences_decide_only_what_disturbed_processes_cannot_explain() -> None:
    loud = {"contended_blocks": 6, "blocks": 10}
    assert parts(over(512, 3.0, **loud))[FUSED].verdict == "inconclusive"
    assert parts(over(512, 5.0, **loud))[FUSED].verdict == "supported"
    assert "while other work disturbs them" in parts(over(512, 5.0, **loud))[FUSED].numbers
    quiet = parts(over(512, 3.0, contended_blocks=0, blocks=10))[FUSED]
    assert quiet.verdict == "supported"
    assert "not recorded" not in quiet.numbers


def test_flops_that_grow_alike_refute_it() -> None:
    alike = [over(n, 3.0, full_total_flops=4 * n**2) for n in (256, 512)]
    assert parts(*alike)[FLOPS].verdict == "refuted"


def test_a_backend_that_computes_something_else_with_a_cache_saves_nothing() -> None:
    untimed = {**dict.fromkeys(VALUES), "complaint": "cached steps are not the full causal pass"}
    found = parts(over(512, 3.0), finding("sdpa", 512, **untimed))
    assert (found[FUSED].verdict, found["sdpa"].verdict) == ("supported", "inconclusive")
    assert found["sdpa"].numbers == "cached steps are not the full causal pass"


def test_without_the_study_or_with_broken_findings_it_is_not_run() -> None:
    assert parts() == {}
    assert parts("nonsense", over(512, 3.0) | {"tokens": "many"}) == {}
    (claim,) = [one for one in ledger([], {"studies": []}) if one.of.name == "Q16"]
    assert claim.verdict == "not run"
    assert "generation" in claim.of.needs
