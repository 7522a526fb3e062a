"""Example pages of the site, from the runs under results/reference."""

import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from attnbench.harness.devices import this_device
from attnbench.harness.devices.this_device import ThisDevice
from attnbench.harness.verbs.app import app
from attnbench.reports.pages.html import write_page
from attnbench.reports.pages.report import open_report

FIRST = ("quickstart", "memory_wall", "head_cost", "advise", "what_heads_learn")
"""The order of the gallery, by scenario; others follow by name."""
ONLY_WHEN_MEASURING = ("--measure", "--quiet", "--wait")


@dataclass(frozen=True, kw_only=True)
class Example:
    """`answer`: its first sentence; may be empty. `command`: what was run. `pages`: its page and
    those beside it, by file name.
    """

    name: str
    title: str
    question: str
    answer: str
    device: str
    command: str
    pages: dict[str, str]


def examples(folder: Path) -> list[Example]:
    """Of every run in the folder, the newest of each scenario or advice, on a CPU and on a GPU.
    Raises BadRun.
    """
    found: dict[str, list[tuple[Path, dict[str, Any]]]] = {}
    for path in sorted(folder.glob("*/run.json")):
        meta = json.loads(path.read_text(encoding="utf-8"))
        found.setdefault(name_of(meta), []).append((path.parent, meta))
    for runs in found.values():
        runs.sort(key=lambda run: run[1]["started_utc"])
    made = [
        advice(name, runs) if is_advice(runs[0][1]) else measured(name, *runs[-1])
        for name, runs in found.items()
    ]
    made.sort(key=lambda one: (place(one.name), one.name))
    return made


def is_advice(meta: dict[str, Any]) -> bool:
    return meta["command"][1:2] == ["advise"]


def name_of(meta: dict[str, Any]) -> str:
    """`quickstart`; `quickstart-gpu`; `advise-llama-3-8b`."""
    if is_advice(meta):
        return f"advise-{Path(meta['command'][2]).stem}"
    return f"{meta['scenario']['name']}{'' if meta['device'] == 'cpu' else '-gpu'}"


def place(name: str) -> int:
    scenario = name.split("-", 1)[0]
    return FIRST.index(scenario) if scenario in FIRST else len(FIRST)


def measured(name: str, run: Path, meta: dict[str, Any]) -> Example:
    report = open_report([run])
    with tempfile.TemporaryDirectory() as temporary:
        write_page(report, Path(temporary) / f"{name}.html")
        pages = pages_in(Path(temporary))
    return Example(
        name=name,
        title=f"{report.heading}{' on a GPU' if name.endswith('-gpu') else ''}",
        question=" ".join(report.questions),
        answer=report.answer,
        device=" ".join(text for _, text in report.headers.values()),
        command=shlex.join(meta["command"]),
        pages=pages,
    )


def advice(name: str, runs: list[tuple[Path, dict[str, Any]]]) -> Example:
    """As `attnbench advise` answers from these runs on the machine that measured them."""
    meta = runs[-1][1]
    words = [word for word in meta["command"][2:] if word not in ONLY_WHEN_MEASURING]
    with tempfile.TemporaryDirectory() as temporary, device_of(meta) as device:
        kept, page = Path(temporary) / "results", Path(temporary) / f"{name}.html"
        for run, of in runs:
            shutil.copytree(run, kept / of["run"])
        given = ["advise", *words, "--device", device.kind, "--out", str(kept)]
        sys.argv = ["attnbench", "advise", *words]  # the page repeats what was asked
        done = CliRunner().invoke(app, [*given, "--json", "--output", str(page)])
        if done.exit_code:
            raise RuntimeError(f"{shlex.join(given)}: {done.output}{done.exception or ''}")
        return Example(
            name=name,
            title=" ".join(["advise", *words[:1]]),
            question="Which attn_implementation for this model, and how long a context?",
            answer=json.loads(done.stdout)["answer"],
            device=f"{device.name} ({device.kind})",
            command=shlex.join(meta["command"]),
            pages=pages_in(Path(temporary)),
        )


def pages_in(folder: Path) -> dict[str, str]:
    return {one.name: one.read_text(encoding="utf-8") for one in sorted(folder.glob("*.html"))}


@contextmanager
def device_of(meta: dict[str, Any]) -> Iterator[ThisDevice]:
    """The machine of a run in place of this one."""
    facts = meta["environment"]
    name = str(facts.get("gpu") or facts.get("cpu") or meta["device"])
    there = ThisDevice(meta["device"], name, facts, meta["memory_bytes"], "what was free there")
    own, arguments = this_device.this_device, sys.argv
    this_device.this_device = lambda requested: there
    if not any(name.startswith("hf") for name in meta["scenario"]["backends"]):
        sys.modules["transformers"] = None  # it was not installed there
    try:
        yield there
    finally:
        this_device.this_device, sys.argv = own, arguments
        if sys.modules.get("transformers", there) is None:
            del sys.modules["transformers"]
