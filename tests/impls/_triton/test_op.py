import pytest

from tests.impls._triton.conftest import child, needs_triton

pytestmark = [needs_triton, pytest.mark.long]


def test_the_function_fits_into_torch() -> None:
    found = child("interpreted_operator", "operator")
    assert found["repeats"]
    assert found["merged"]
    assert all(found["layouts"])
    assert not found["lse_has_gradient"]
    assert found["lse_error"] < 1e-5


def test_the_function_refuses_shapes_that_it_would_read_wrongly() -> None:
    errors = child("interpreted_operator", "refusals")
    assert all("wanted" in error for error in errors), errors
    assert "torch.float32 [2, 2, 37, 24]" in errors[0]
    assert errors[-1] == "keys in pages have no gradients; wanted inputs that require none"
