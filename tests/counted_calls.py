"""Work that is counted, for tests of how much is done: a busy machine changes times, not counts."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls(act: Callable[[], object]) -> int:
    """How many functions of Python and of C are called while `act` runs, in this thread."""
    count = 0

    def note(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count
