"""Commands in a folder with copies of the kept runs, and what they print."""

import gc
import io
import os
import re
import sys
from pathlib import Path

import pytest

from attnbench.harness.devices import this_device
from attnbench.harness.devices.this_device import ThisDevice
from attnbench.harness.verbs.app import main

HERE = Path(__file__).parent
RENEW = os.environ.get("ATTNBENCH_APPROVE") == "1"
MEANT = "if this is meant: make approve, or ATTNBENCH_APPROVE=1 pytest tests/approved"
DEVICE = ThisDevice(
    kind="cpu",
    name="Imaginary CPU 9000",
    facts={"cpu": "Imaginary CPU 9000", "torch": "2.15.0"},
    memory_bytes=4 << 30,
    memory_from="as given",
)


class Terminal(io.TextIOWrapper):
    """A terminal without colours; COLUMNS has its width."""

    def __init__(self) -> None:
        self.printed = io.BytesIO()
        super().__init__(self.printed, encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        self.flush()
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.printed.getvalue().decode())


def printed(words: list[str], runs: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str, int]:
    """What a command prints in a terminal of 80 columns, on stdout and stderr; its exit code."""
    monkeypatch.chdir(runs)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(this_device, "this_device", lambda requested: DEVICE)
    monkeypatch.setitem(sys.modules, "transformers", None)  # advice is the same with and without it
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "argv", ["attnbench", *words])
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with pytest.raises(SystemExit) as end:
        main()
    gc.enable()  # `compare` turns it off for the rest of its process
    monkeypatch.undo()
    return out.text(), err.text(), int(end.value.code or 0)
