"""Which configurations a call gets, with the fake of Triton's do_bench in faked_tuning.py."""

from dataclasses import asdict
from typing import Any

import pytest

from attnbench.impls import Problem
from attnbench.impls._triton.configs import KERNELS, Kind, candidates
from tests.impls._triton.conftest import A_PART, child, needs_triton, on_problems

pytestmark = [needs_triton, pytest.mark.long]

SIZES: dict[str, Any] = {"batch": 1, "seq_len": 200, "d_model": 128, "heads": 2, "dtype": "bf16"}
KIND = Kind.of(Problem(**SIZES), gpu="", capability=80)


def choice(place: int) -> dict[str, Any]:
    """The configurations at this place of their lists, as in a row."""
    return {kernel: asdict(candidates(kernel, KIND)[place]) for kernel in KERNELS}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    cache = tmp_path_factory.mktemp("cache")
    return {"ATTNBENCH_CACHE": str(cache), "TRITON_CACHE_DIR": str(cache / "triton")}


@pytest.fixture(scope="module")
def timed(folders: dict[str, str]) -> Any:
    """The facts of a row, from a process that has no kernel in Triton's cache."""
    return child("faked_tuning", "prepare", BENCH="last", **folders)


def test_a_call_uses_what_triton_found_fastest_and_says_what_that_cost(
    timed: dict[str, Any],
) -> None:
    assert timed["configuration"] == choice(-1)
    assert timed["configuration_source"] == "timed"
    assert timed["tuning_s"] > 0
    assert timed["forward_kernel"] == "portable"
    assert timed["why_not_gluon"] == "it is for compute capability 9.x; this is 8.0"
    listed = [(kernel, config) for kernel in KERNELS for config in candidates(kernel, KIND)]
    assert timed["candidates"] == [
        {"kernel": kernel, **asdict(config), "median_ms": timed["candidates"][place]["median_ms"]}
        for place, (kernel, config) in enumerate(listed)
    ]
    assert all(one["median_ms"] > 0 for one in timed["candidates"])


@pytest.fixture(scope="module")
def others(folders: dict[str, str], timed: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = str(tmp_path_factory.mktemp("others"))
    return child("faked_tuning", "others", folder, BENCH="", **folders)


def test_a_second_process_without_tritons_cache_carries_the_same_choice(
    timed: dict[str, Any], others: Any
) -> None:
    assert others["carried"] == timed, "it was made again"


def test_triton_keeps_what_it_timed(timed: dict[str, Any], others: Any) -> None:
    assert others["again"]["configuration"] == timed["configuration"]


def test_what_the_compiler_refuses_is_left_out(others: Any) -> None:
    found, first = others["refused"], candidates("forward", KIND)[0]
    assert first.block_q == 128
    assert found["configuration"]["forward"]["block_q"] == 64
    assert found["candidates"][0]["median_ms"] is None


def test_a_gpu_that_admits_one_process_gets_the_first_configuration(others: Any) -> None:
    found = others["busy"]
    assert found["configuration"] == choice(0)
    assert found["configuration_source"] == "untimed"
    assert found["tuning_s"] == 0


def test_no_configuration_that_works_is_an_error_with_its_reason(others: Any) -> None:
    assert others["fails"].startswith("timing the configurations of forward failed: RuntimeError: ")
    assert "none of the configurations of forward works" in others["fails"]


def test_the_interpreter_has_one_configuration() -> None:
    found = on_problems(*A_PART)["prepared"]
    assert found["configuration_source"] == "only"
    assert found["tuning_s"] == 0
    assert found["complaint"] == ""
