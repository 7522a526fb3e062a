"""The kept runs, copied."""

import shutil
from pathlib import Path

import pytest

from tests.approved.printing import HERE


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with copies of all kept runs, where nothing else is."""
    folder = tmp_path_factory.mktemp("approved") / "runs"
    shutil.copytree(HERE / "runs", folder)
    return folder
