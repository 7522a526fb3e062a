"""The kernels as Triton compiles them, executed in numpy (tests/ptxrun).

With another Triton: ATTNBENCH_TRITON=FOLDER, where `pip install --no-deps --target` put it.
"""

import os
from typing import Any

import pytest

from attnbench.impls._triton.configs import KERNELS
from tests.conftest import ROOT
from tests.impls._triton.conftest import child, needs_triton

pytestmark = needs_triton
SEARCHED = [os.environ.get("ATTNBENCH_TRITON", ""), str(ROOT / ".package"), str(ROOT)]


def executed(*arguments: str) -> tuple[str, Any]:
    """Triton's version, and what a check of executed.py found."""
    path = os.pathsep.join(filter(None, SEARCHED))
    result = child("executed", *arguments, PYTHONPATH=path)
    return result["triton"], result["found"]


@pytest.mark.long
def test_a_problem_of_each_kernel_is_right_whenever_copies_and_products_happen() -> None:
    _, found = executed("chosen")
    assert len(found) == 16
    assert {name: complaint for name, complaint in found.items() if complaint} == {}


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("major", ["8", "9"])
def test_every_listed_configuration_is_right_and_free_of_races(major: str, kernel: str) -> None:
    _, found = executed("listed", major, kernel)
    assert len(found) > 15
    assert {name: complaint for name, complaint in found.items() if complaint} == {}


@pytest.mark.nightly
def test_the_candidate_of_triton_3_6_that_waits_for_ever_is_found() -> None:
    version, found = executed("hanging")
    if not version.startswith("3.6."):
        pytest.skip(f"Triton {version} does not compile it")
    assert found.startswith("deadlock: ")


# Waits and arrivals that keep the order of consumers, not data, or that follow from others.
UNNOTICED_AT_MOST = 24


@pytest.mark.nightly
def test_most_changes_of_synchronizing_instructions_are_noticed() -> None:
    _, found = executed("mutants")
    assert len(found) > 80
    missed = [name for name, complaint in found.items() if not complaint]
    assert len(missed) <= UNNOTICED_AT_MOST, "\n".join(missed)
