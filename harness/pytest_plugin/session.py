"""What the plugin keeps during a pytest session.

Loaded in every session, so it imports nothing but pytest.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .runs import Runs

NOT_UNDER_XDIST = (
    "attnbench measures nothing under xdist: parallel processes would measure each other; run"
    " scenarios with -n 0"
)
runs_key: "pytest.StashKey[Runs]" = pytest.StashKey()
