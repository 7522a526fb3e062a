"""The kernels in Triton's interpreter: correct, unaffected by layout, as large as predicted."""

from typing import Any

import pytest

from attnbench.harness.measure.error_limits import LIMIT_RATIO
from tests.budget import first
from tests.impls._triton.conftest import child, needs_triton
from tests.impls.conftest import PROBLEMS

pytestmark = [needs_triton, pytest.mark.long]  # minutes of interpreting


def complaints(found: dict[str, Any]) -> dict[str, str]:
    return {name: result["complaint"] for name, result in found.items() if result["complaint"]}


EVERY = first(1, [("bf16", 3), ("bf16", 1), ("fp32", 1), ("fp16", 1)])


@pytest.mark.parametrize("some", EVERY)
def test_kernels_are_as_close_as_the_same_dtype_reference(some: tuple[str, int]) -> None:
    dtype, every = some
    found = child("interpreted_problems", "shared_list", dtype, str(every))
    described = [one for name, one in found.items() if name.endswith(" described")]
    assert 2 * len(described) == len(found) == 2 * len(PROBLEMS) // every
    assert complaints(found) == {}
    assert max(result["ratio"] for result in found.values()) <= LIMIT_RATIO
    assert all(one["described"] == [True] * 3 for one in described)


@pytest.mark.nightly
@pytest.mark.parametrize("count", first(1, [8, 40]))
@pytest.mark.parametrize("mask", ["none", "local", "chunked", "ragged", "paged"])
def test_kernels_are_as_close_on_shapes_that_hypothesis_draws(mask: str, count: int) -> None:
    found = child("interpreted_problems", "drawn_shapes", mask, str(count))
    assert found["examples"] >= count
    assert min(found["softcap"], found["sinks"]) >= count // 4  # so as many of each in all
    assert 0 < found["ratio"] <= LIMIT_RATIO


@pytest.mark.nightly
@pytest.mark.parametrize("every", first(1, [4, 1]))
def test_the_check_notices_every_broken_kernel(every: int) -> None:
    found = child("interpreted_problems", "canaries", str(every))
    assert set(found.pop("intact")) == {""}
    assert len(found) >= 30 // every
    assert [name for name, complaint in found.items() if not complaint] == []


@pytest.mark.parametrize("some", EVERY[:3])
def test_masked_problems_are_as_close(some: tuple[str, int]) -> None:
    dtype, every = some
    found = child("interpreted_problems", "masks", dtype, str(every))
    assert {name.split()[0] for name in found} == {"none", "padding", "local", "chunked"}
    assert complaints(found) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("every", first(1, [5, 1]))
def test_kernels_read_exactly_the_tiles_of_which_a_query_sees_something(every: int) -> None:
    found = child("interpreted_operator", "unseen_tiles", str(every))
    assert len(found) == 4 * len(range(0, 36, every))
    assert [name for name, exactly in found.items() if not exactly] == []


@pytest.mark.parametrize(
    ("module", "name", "count"),
    [
        ("interpreted_operator", "masked_keys", 4),  # their contents change no bit
        ("interpreted_operator", "fully_masked_queries", 4),  # zeros, and zero gradients
        ("interpreted_operator", "strides", 7),  # change no bit
        ("interpreted_pages", "paged", 21),  # as side by side, whatever else is in the pool
    ],
)
def test_results_are_those_of_the_keys_that_are_seen(module: str, name: str, count: int) -> None:
    found = child(module, name)
    assert len(found) == count
    assert all(found.values()), found


def test_descriptors_are_used_if_they_fit_and_change_no_bit() -> None:
    found = child("interpreted_operator", "descriptors")
    assert found.pop("masked and summed") == [False, False, False, True, True, False]
    fitting = {name for name, (used, _) in found.items() if used == [True] * 3}
    assert fitting == {"merged heads", "every second row"}
    assert all(same for _, same in found.values()), found


@pytest.mark.parametrize("every", first(1, [3, 1]))
def test_peak_bytes_are_as_predicted_to_the_byte(every: int) -> None:
    found = child("interpreted_operator", "peaks", str(every))
    known = {name: (predicted, peak) for name, (predicted, peak) in found.items() if predicted}
    unknown = [name for name in found if name not in known]
    assert all("empty_rows" in name and "backward" in name for name in unknown), unknown
    assert [name for name, (predicted, peak) in known.items() if predicted != peak] == []
