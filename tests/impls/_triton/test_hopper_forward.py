"""The forward kernel in Gluon: what it does not take. test_run_on_gpu.py holds its source."""

import pytest

from tests.impls._triton.conftest import child, needs_triton


@pytest.mark.long
@needs_triton
def test_what_it_does_not_take_goes_to_the_portable_kernel_with_a_reason() -> None:
    found = child("compiled", "refusals")
    assert found.pop("taken") == ["hopper_forward_kernel", None]
    wanted = {
        "a key mask": "no key mask",
        "fp32": "fp16 and bf16 only",
        "wide heads": "up to 128 wide",
        "columns apart": "no descriptor fits",
        "one for all heads": "no descriptor fits",
        "no Gluon": "has not the Gluon",
    }
    assert set(found) == set(wanted)
    for name, (kernel, why_not) in found.items():
        assert kernel == "forward_kernel"
        assert wanted[name] in why_not
