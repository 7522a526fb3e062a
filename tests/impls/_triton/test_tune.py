"""`prepare` on a stand-in for a GPU, on which each candidate is faster than those before.

It has 100 KiB of shared memory, too little for some candidates.
"""

from dataclasses import asdict
from itertools import groupby
from typing import Any

import pytest

from attnbench.impls._triton.configs import KERNELS, Config, Kernel, candidates
from tests.impls._triton.conftest import child, needs_triton

pytestmark = needs_triton


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    cache = str(tmp_path_factory.mktemp("cache"))
    found: dict[str, Any] = child("compiled", "tuned", TRITON_CACHE_DIR=cache)
    return found


def listed(kernel: Kernel) -> list[list[int]]:
    found = candidates(kernel, capability=(9, 0), item_bytes=2, width=64, n_q=256, causal=True)
    return [config.numbers() for config in found]


def in_turn(kernel: Kernel) -> list[list[int]]:
    """The first without descriptors before all others, which are compared with it."""
    found = listed(kernel)
    first = next(config for config in found if not config[4])
    return [first, *(config for config in found if config != first)]


def skipped(facts: dict[str, Any]) -> dict[tuple[str, tuple[int, ...]], str]:
    fields = Config.__dataclass_fields__
    return {
        (one["kernel"], tuple(int(one[field]) for field in fields)): one["reason"]
        for one in facts["skipped"]
    }


@pytest.mark.long
def test_prepare_times_the_candidates_that_fit_and_the_call_uses_the_fastest(
    prepared: dict[str, Any],
) -> None:
    found = prepared["timed"]
    too_large = skipped(found["facts"])
    assert set(too_large) == {("forward", (128, 128, 8, 3, 1, 0))}
    message = "OutOfResources: out of resource: shared memory, Required: "
    assert all(reason.startswith(message) for reason in too_large.values())
    assert found["tried"] == [
        config
        for kernel in KERNELS
        for config in in_turn(kernel)
        if (kernel, tuple(config)) not in too_large
    ]
    assert found["used"] == [listed(kernel)[-1] for kernel in KERNELS]
    assert found["shape"] == [1, 256, 128]
    assert found["gradients"]


def test_the_facts_have_the_configuration_and_the_time_that_tuning_took(
    prepared: dict[str, Any],
) -> None:
    facts = prepared["timed"]["facts"]
    assert list(facts) == ["configuration", "configuration_source", "tune_ms", "skipped"]
    last = {kernel: asdict(Config.of(listed(kernel)[-1])) for kernel in KERNELS}
    assert facts["configuration"] == last
    assert facts["configuration_source"] == "timed"
    assert facts["tune_ms"] > 0


def test_a_single_candidate_is_taken_without_a_choice(prepared: dict[str, Any]) -> None:
    """Short sequences have one candidate; without gradients only the forward kernel is needed."""
    facts = prepared["only"]["facts"]
    assert facts["configuration_source"] == "only"
    assert facts["configuration"] == {"forward": asdict(Config.of(listed("forward")[-1]))}
    assert facts["skipped"] == []


def test_descriptors_are_not_tried_on_tensors_that_they_do_not_fit(
    prepared: dict[str, Any],
) -> None:
    found = prepared["narrow"]
    assert found["tried"] == [config for config in listed("forward") if not config[4]]
    reasons = {config: reason for (_, config), reason in skipped(found["facts"]).items()}
    described = {config: reason for config, reason in reasons.items() if config[4]}
    assert set(described) == {tuple(config) for config in listed("forward") if config[4]}
    message = "no descriptor fits these tensors"
    assert all(reason.startswith(message) for reason in described.values())


def test_a_candidate_that_does_not_compile_or_computes_wrongly_is_skipped(
    prepared: dict[str, Any],
) -> None:
    found = prepared["broken"]
    reasons = skipped(found["facts"])
    failing, wrong = tuple(prepared["failing"]), tuple(prepared["wrong"])
    assert reasons["grad_q", failing] == "RuntimeError: PassManager::run failed"
    message = "gives another result than the candidates without descriptors"
    assert reasons["grad_kv", wrong] == message
    assert found["used"] == prepared["timed"]["used"]


def test_the_choice_of_an_earlier_run_is_taken_without_timing_others(
    prepared: dict[str, Any],
) -> None:
    found = prepared["table"]
    assert found["used"] == prepared["timed"]["used"]
    assert found["tried"] == [config for config, _ in groupby(found["used"])]
    assert found["facts"]["configuration_source"] == "table"
    assert found["facts"]["configuration"] == prepared["timed"]["facts"]["configuration"]


def test_a_choice_that_no_longer_works_is_replaced(prepared: dict[str, Any]) -> None:
    found = prepared["stale"]
    assert found["facts"]["configuration_source"] == "timed"
    too_large, last = [128, 128, 8, 3, 1, 0], listed("forward")[-1]
    *_, next_best = (one for one in in_turn("forward") if one not in (too_large, last))
    assert found["used"] == [next_best, *prepared["timed"]["used"][1:]]
    assert "RuntimeError: PassManager::run failed" in skipped(found["facts"]).values()
