"""The command line without a process of its own."""

import gc
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from attnbench.harness.cli.app import main


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line in this process, in an empty folder: for what starts no worker."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def run(*args: object, env: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
        words = ["attnbench", *map(str, args)]
        monkeypatch.setattr(sys, "argv", words)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        gc.enable()  # `compare` turns it off for the rest of its process
        for name in env:
            monkeypatch.delenv(name)
        printed = capfd.readouterr()
        assert isinstance(code, int)
        return subprocess.CompletedProcess(words, code, printed.out, printed.err)

    return run
