"""The kernels in Triton's interpreter: correct, unaffected by layout, as large as predicted.

A part of each check for CI, in two processes, as a start takes seconds; all of it each night.
"""

from functools import cache
from typing import Any

import pytest

from attnbench.harness.measure.error_limits import LIMIT_RATIO
from tests.impls._triton.conftest import A_PART, child, needs_triton, on_problems
from tests.impls.conftest import PROBLEMS

pytestmark = [needs_triton, pytest.mark.long]  # minutes of interpreting
NIGHTLY = pytest.mark.nightly
SOME = [A_PART, *(pytest.param((one, 1), marks=NIGHTLY) for one in ("bf16", "fp32", "fp16"))]
PARTS = [True, pytest.param(False, marks=NIGHTLY)]


@cache
def of_operator(*, part: bool) -> Any:
    """Each check of a part of its cases, or of all."""
    several = {"masked_keys": 3, "fully_masked_queries": 2, "strides": 4, "descriptors": 2}
    several |= {"paged": 7, "peaks": 8}
    checks = [f"{name}:{every if part else 1}" for name, every in several.items()]
    return child("interpreted_operator", *checks, "operator", "refusals")


def complaints(found: dict[str, Any]) -> dict[str, str]:
    return {name: result["complaint"] for name, result in found.items() if result["complaint"]}


@pytest.mark.parametrize("some", SOME)
def test_kernels_are_as_close_as_the_same_dtype_reference(some: tuple[str, int]) -> None:
    found = on_problems(*some)["shared_list"]
    described = [one for name, one in found.items() if name.endswith(" described")]
    assert 2 * len(described) == len(found) == 2 * len([*PROBLEMS][some[1] - 1 :: some[1]])
    assert complaints(found) == {}
    assert max(result["ratio"] for result in found.values()) <= LIMIT_RATIO
    assert all(one["described"] == [True] * 3 for one in described)


@pytest.mark.parametrize("some", SOME)
def test_masked_problems_are_as_close(some: tuple[str, int]) -> None:
    found = on_problems(*some)["masks"]
    assert {name.split()[0] for name in found} >= {"padding", "local", "chunked"}
    assert complaints(found) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("mask", ["none", "local", "chunked", "ragged", "paged"])
def test_kernels_are_as_close_on_shapes_that_hypothesis_draws(mask: str) -> None:
    found = child("interpreted_problems", f"drawn_shapes:{mask}:40")["drawn_shapes"]
    assert found["examples"] >= 40
    assert min(found["softcap"], found["sinks"]) >= 10
    assert 0 < found["ratio"] <= LIMIT_RATIO


@pytest.mark.nightly
def test_the_check_notices_every_broken_kernel() -> None:
    found = child("interpreted_problems", "canaries:1")["canaries"]
    assert set(found.pop("intact")) == {""}
    assert len(found) >= 30
    assert [name for name, complaint in found.items() if not complaint] == []


@pytest.mark.nightly
def test_kernels_read_exactly_the_tiles_of_which_a_query_sees_something() -> None:
    found = child("interpreted_operator", "unseen_tiles:1")["unseen_tiles"]
    assert len(found) == 4 * 36
    assert [name for name, exactly in found.items() if not exactly] == []


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("name", "fewest"),
    [
        ("masked_keys", 2),  # their contents change no bit
        ("fully_masked_queries", 2),  # zeros, and zero gradients
        ("strides", 2),  # change no bit
        ("paged", 3),  # as side by side, whatever else is in the pool
    ],
)
def test_results_are_those_of_the_keys_that_are_seen(name: str, fewest: int, part: bool) -> None:
    found = of_operator(part=part)[name]
    assert len(found) >= fewest
    assert all(found.values()), found


@pytest.mark.parametrize("part", PARTS)
def test_descriptors_are_used_if_they_fit_and_change_no_bit(part: bool) -> None:
    found = dict(of_operator(part=part)["descriptors"])
    assert found.pop("masked and summed") == [False, False, False, True, True, False]
    fitting = {name for name, (used, _) in found.items() if used == [True] * 3}
    assert fitting == {"merged heads", "every second row"}
    assert len(found) >= 4
    assert all(same for _, same in found.values()), found


@pytest.mark.parametrize("part", PARTS)
def test_peak_bytes_are_as_predicted_to_the_byte(part: bool) -> None:
    found = of_operator(part=part)["peaks"]
    known = {name: (predicted, peak) for name, (predicted, peak) in found.items() if predicted}
    unknown = [name for name in found if name not in known]
    assert known
    assert all("empty_rows" in name and "backward" in name for name in unknown), unknown
    assert [name for name, (predicted, peak) in known.items() if predicted != peak] == []


def test_the_function_fits_into_torch() -> None:
    found = of_operator(part=True)["operator"]
    assert found["repeats"]
    assert found["merged"]
    assert all(found["layouts"])
    assert not found["lse_has_gradient"]
    assert found["lse_error"] < 1e-5


def test_the_function_refuses_shapes_that_it_would_read_wrongly() -> None:
    errors = of_operator(part=True)["refusals"]
    assert all("wanted" in error for error in errors), errors
    assert "torch.float32 [2, 2, 37, 24]" in errors[0]
    assert errors[-1] == "keys in pages have no gradients; wanted inputs that require none"
