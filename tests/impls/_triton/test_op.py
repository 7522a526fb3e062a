import pytest

from tests.impls._triton.conftest import child, needs_triton

pytestmark = needs_triton


@pytest.mark.nightly
@pytest.mark.long
def test_the_operator_fits_into_torch() -> None:
    found = child("interpreted_operator", "operator")
    assert set(found["opcheck"].values()) == {"SUCCESS"}
    assert found["compiles"]
    assert found["repeats"]
    assert found["merged"]
    assert all(found["layouts"])
    assert not found["lse_has_gradient"]
    assert found["lse_error"] < 1e-5
    pairs = 2 * 2 * 2 * 37 * 50  # two operations, batch, heads, queries, keys
    assert found["flops"] == [pairs * (24 + 20), pairs * (3 * 24 + 2 * 20)]


@pytest.mark.long
def test_the_operator_refuses_arguments_that_it_would_read_wrongly() -> None:
    errors = child("interpreted_operator", "refusals")
    assert all("wanted" in error for error in errors), errors
    assert "q [2, 37, 24]" in errors[0]
    assert errors[-1] == "scale is 0.0; wanted a positive number"
