"""What is printed about kept runs, against texts that were read and approved.

Each file holds a command, its output and its exit code. After a change on purpose, `make approve`
renews them; review the diff.
"""

import difflib
import gc
import io
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from attnbench.harness.cli.app import main
from attnbench.harness.machine import this_device
from attnbench.harness.machine.this_device import ThisDevice

HERE = Path(__file__).parent
RENEW = os.environ.get("ATTNBENCH_APPROVE") == "1"
QUICKSTART = "cpu-20261121-quickstart"  # measured by version 0.2
RUNS = sorted(path.parent.name for path in (HERE / "runs").glob("*/run.json"))
PAGES = tuple(run for run in RUNS if run not in ("before", "after"))
DEVICE = ThisDevice(
    kind="cpu",
    name="Imaginary CPU 9000",
    facts={"cpu": "Imaginary CPU 9000", "torch": "2.15.0"},
    memory_bytes=4 << 30,
    memory_from="as given",
)
COMMANDS = {
    **{f"{run}.md": f"report {run} --format md" for run in PAGES},
    **{f"{run}.txt": f"show {run}" for run in PAGES},
    "cards.txt": f"show {QUICKSTART} --sections trust",
    "two_runs.md": "report before after --format md",
    "compare_runs.txt": "compare before after",
    "compare_runs.md": "compare before after --format md",
    "compare_one_process.txt": "compare before one_process",
    "compare_backends.txt": f"compare {QUICKSTART} --baseline fused",
    "compare_environments.txt": "compare two_environments@old two_environments@new",
    "compare_decode.txt": "compare decode decode",
    "gate_fails.txt": "compare before after --gate 'latency: 5%, peak_bytes: 0%'",
    "gate_passes.md": "compare before before --gate 'latency: 5%' --format md",
    "gate_environments.txt": (
        "compare two_environments@old two_environments@new --gate 'latency: 10%'"
    ),
    "other_devices.txt": "compare before gpu",
    "claims.txt": f"claims --run {QUICKSTART} --run studies --run learning --run approximate",
    "advise_measured.txt": "advise gpt2 --context 1k --memory-gib 4 --device cpu --out advise",
    "advise_unmeasured.txt": (
        "advise llama-3-8b --context 8k --memory-gib 24 --device cpu --out advise"
    ),
    "advise_windows.txt": "advise gemma-3-4b --memory-gib 16 --device cpu --out advise",
    "advise_encoder.txt": "advise bert-base --phase training --memory-gib 4 --out advise",
}


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


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with copies of all kept runs, where nothing else is."""
    folder = tmp_path_factory.mktemp("approved") / "runs"
    shutil.copytree(HERE / "runs", folder)
    return folder


HEAVY = {"advise_windows.txt": pytest.mark.long}  # torch follows 18 calls on a meta device


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=HEAVY.get(name, ())) for name in COMMANDS]
)
def test_what_is_printed_was_approved(
    name: str, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = COMMANDS[name]
    text = printed(shlex.split(command), runs, monkeypatch)
    found = f"$ attnbench {command}\n{text}"
    approved = HERE / name
    if RENEW:
        approved.write_text(found)
    wanted = approved.read_text() if approved.exists() else ""
    changes = difflib.unified_diff(
        wanted.splitlines(), found.splitlines(), f"{name}, approved", f"{name}, now", lineterm=""
    )
    assert found == wanted, "\n".join(
        [*changes, "if this is meant: make approve, or ATTNBENCH_APPROVE=1 pytest tests/approved"]
    )


def test_every_approved_text_has_its_command() -> None:
    assert {path.name for path in HERE.glob("*.*") if path.suffix in (".md", ".txt")} == set(
        COMMANDS
    )


def printed(words: list[str], runs: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command prints in a terminal of 80 columns, and its exit code."""
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
    notes = f"\n[stderr]\n{err.text()}" if err.text().strip() else ""
    return f"{out.text()}{notes}\n[exit code {end.value.code or 0}]\n"
