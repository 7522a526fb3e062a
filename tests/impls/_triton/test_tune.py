"""`prepare` on a stand-in for a GPU, on which each candidate is faster than those before.

It has 100 KiB of shared memory, too little for some candidates.
"""

from dataclasses import asdict
from typing import Any

import pytest

from attnbench.impls._triton.configs import KERNELS, Config, Kernel, candidates
from attnbench.impls.problem import Problem
from tests.impls._triton.conftest import child, needs_triton

pytestmark = [needs_triton, pytest.mark.long]  # 80 s of compiling


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


def test_prepare_times_the_candidates_that_fit_and_the_call_uses_the_fastest(
    prepared: dict[str, Any],
) -> None:
    found = prepared["timed"]
    too_large = skipped(found["facts"])
    assert set(too_large) == {
        ("forward", (128, 128, 8, 3, *options)) for options in ((1, 0, 0), (1, 0, 1))
    }
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


def test_pages_are_followed_by_pointers_only(prepared: dict[str, Any]) -> None:
    found = prepared["paged"]
    assert found["tried"] == [config for config in listed("forward") if not config[4]]
    assert found["facts"]["why_not_gluon"] == "it takes no pages"


def test_the_facts_have_the_configuration_and_the_time_that_tuning_took(
    prepared: dict[str, Any],
) -> None:
    facts = prepared["timed"]["facts"]
    assert list(facts) == [
        *("configuration", "configuration_source", "timed_with"),
        *("forward_kernel", "why_not_gluon"),
        *("timed_launch_count", "candidates", "skipped", "serialization_unread", "tune_ms"),
    ]
    sizes = {"batch": 1, "heads": 2, "seq_len": 256, "kv_seq_len": 256}
    assert facts["timed_with"] == dict.fromkeys(KERNELS, sizes)
    assert facts["forward_kernel"] == "portable"
    assert "out of resource: shared memory" in facts["why_not_gluon"]
    last = {kernel: asdict(Config.of(listed(kernel)[-1])) for kernel in KERNELS}
    assert facts["configuration"] == last
    assert facts["configuration_source"] == "timed"
    assert facts["tune_ms"] > 1
    assert facts["serialization_unread"] is None


def test_a_serialized_candidate_is_never_launched(prepared: dict[str, Any]) -> None:
    found = prepared["serialized"]
    *others, fastest = listed("forward")
    assert fastest not in found["tried"]
    assert found["used"] == [others[-1]]
    reason = skipped(found["facts"])["forward", tuple(fastest)]
    assert reason.startswith("its matrix products run one at a time")


def test_descriptors_are_not_tried_on_tensors_that_they_do_not_fit(
    prepared: dict[str, Any],
) -> None:
    found = prepared["narrow"]
    for_narrow = [config for config in listed("forward") if not config[6]]
    assert found["tried"] == [config for config in for_narrow if not config[4]]
    assert found["facts"]["why_not_gluon"] == "heads are 20 wide; it takes 33 to 128"
    reasons = {config: reason for (_, config), reason in skipped(found["facts"]).items()}
    described = {config: reason for config, reason in reasons.items() if config[4]}
    assert set(described) == {tuple(config) for config in for_narrow if config[4]}
    message = "no descriptor fits these tensors"
    assert all(reason.startswith(message) for reason in described.values())


def test_a_candidate_that_does_not_compile_or_computes_wrongly_is_skipped(
    prepared: dict[str, Any],
) -> None:
    found = prepared["broken"]
    reasons = skipped(found["facts"])
    failing, wrong = tuple(prepared["failing"]), tuple(prepared["wrong"])
    assert reasons["grad_q", failing] == "RuntimeError: PassManager::run failed"
    message = "gives another result than the first candidate without descriptors"
    assert reasons["grad_kv", wrong] == message
    assert found["used"] == prepared["timed"]["used"]


def test_the_choice_of_an_earlier_run_is_taken_without_timing_others(
    prepared: dict[str, Any],
) -> None:
    found = prepared["table"]
    assert found["used"] == prepared["timed"]["used"]
    assert found["tried"] == found["used"]
    assert found["facts"]["candidates"] == []
    assert found["facts"]["configuration_source"] == "table"
    assert found["facts"]["configuration"] == prepared["timed"]["facts"]["configuration"]


@pytest.mark.parametrize(("variant", "left_out"), [("portable", [6]), ("pointers", [4, 6])])
def test_variants_leave_gluon_and_descriptors_out(
    variant: str, left_out: list[int], prepared: dict[str, Any]
) -> None:
    found = prepared[variant]
    allowed = [one for one in listed("forward") if not any(one[place] for place in left_out)]
    tried_or_skipped = {*map(tuple, found["tried"]), *(key[1] for key in skipped(found["facts"]))}
    assert tried_or_skipped == set(map(tuple, allowed))
    assert found["facts"]["why_not_gluon"] == f"triton:{variant} leaves it out"


def test_what_broke_the_context_is_left_out_from_then_on_with_a_remark(
    prepared: dict[str, Any],
) -> None:
    last = listed("forward")[-1]
    assert "broke the GPU's context: RuntimeError: CUDA error: an illegal" in prepared["breaks"]
    assert str(Config.of(last)) in prepared["breaks"]
    after = prepared["after_a_break"]
    assert last not in after["tried"]
    assert after["used"] == [listed("forward")[-2]]
    assert "hung or broke the GPU's context" in skipped(after["facts"])["forward", tuple(last)]
    assert all("hung" not in one for one in skipped(prepared["portable"]["facts"]).values())


def test_all_that_a_call_launches_was_compiled_ahead(prepared: dict[str, Any]) -> None:
    every = sum(len(listed(kernel)) for kernel in KERNELS)
    assert prepared["cubins"] == [every, every]


@pytest.mark.parametrize(
    ("sizes", "timed"),
    [({"seq_len": 16384}, (4096, 4096)), ({"seq_len": 1, "kv_seq_len": 32768}, (1, 4096))],
)
def test_the_sizes_that_were_timed_are_named_not_those_of_the_problem(
    sizes: dict[str, int], timed: tuple[int, int]
) -> None:
    tune = pytest.importorskip("attnbench.impls._triton.tune")
    given = Problem(batch=2, d_model=64, heads=2, dtype="bf16", **sizes)
    found = tune.timed_sizes(given)
    assert (found["seq_len"], found["kv_seq_len"]) == timed
    assert (found["batch"], found["heads"]) == (2, 2)
