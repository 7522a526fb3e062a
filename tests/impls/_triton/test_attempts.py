"""Notes of launches, as a later process reads them."""

from pathlib import Path

import pytest

from attnbench.harness.files.user_cache import cache_folder
from attnbench.impls._triton.launch_notes import folder
from tests.impls._triton.conftest import child

COUNTS = {"broke the context", "its process ended", "its process hangs"}


@pytest.mark.long
def test_a_launch_that_hung_or_broke_the_context_is_not_made_again(tmp_path: Path) -> None:
    found = child("attempted", ATTNBENCH_CACHE=str(tmp_path))
    assert {name for name, reason in found.items() if reason} == COUNTS
    assert len(found) == 12
    assert all(str(tmp_path) in found[name] for name in COUNTS)


def test_notes_are_in_the_same_cache_as_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ATTNBENCH_CACHE", ""), ("XDG_CACHE_HOME", "/x"), ("XDG_CACHE_HOME", "")):
        monkeypatch.setenv(name, value)
        assert folder().parent == cache_folder()
