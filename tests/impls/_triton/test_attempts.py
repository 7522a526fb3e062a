"""Notes of launches, as a later process reads them."""

from pathlib import Path

import pytest

from tests.impls._triton.conftest import child, needs_triton

COUNTS = {"broke the context", "its process ended", "its process hangs"}


@needs_triton
@pytest.mark.long
def test_a_launch_that_hung_or_broke_the_context_is_not_made_again(tmp_path: Path) -> None:
    found = child("attempted", TRITON_CACHE_DIR=str(tmp_path))
    assert {name for name, reason in found.items() if reason} == COUNTS
    assert len(found) == 12
    assert all(str(tmp_path) in found[name] for name in COUNTS)
