"""Files of the user's that studies look at, and devices elsewhere."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.start import RunOptions, start_run
from attnbench.harness.scenario import load
from attnbench.harness.scenario.selection import Selection


def test_files_are_looked_at_on_this_machine_alone(tmp_path: Path) -> None:
    given: Any = SimpleNamespace(name="m", study="any", flag="--given m")
    options = RunOptions(command=(), listener=Listener(), engine=SimpleNamespace())
    with pytest.raises(BadInput, match="works on this machine only; leave out --on"):
        start_run(load("quickstart"), tmp_path, 0, Selection(attachments=(given,)), options)
    assert [*tmp_path.iterdir()] == []
