"""The project's workflows, its action, and the workflows shown in docs/ci.md, as plain data."""

import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML

from tests.conftest import ROOT

ACTION = ROOT / ".github" / "actions" / "attnbench" / "action.yml"
PAGE = ROOT / "docs" / "ci.md"


def parsed(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)  # YAML 1.2, where `on` is a word


def workflows() -> dict[str, Any]:
    files = {
        path.name: parsed(path.read_text())
        for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    }
    shown = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return files | {
        f"docs/ci.md, {number}": parsed(text) for number, text in enumerate(shown, start=1)
    }


def texts() -> list[str]:
    """The same as they are written, with comments."""
    files = (ROOT / ".github" / "workflows").glob("*.yml")
    return [path.read_text() for path in (*files, ACTION, PAGE)]


def action() -> Any:
    return parsed(ACTION.read_text())


def steps(document: Any) -> Iterator[dict[str, Any]]:
    """All steps of a workflow or of the action."""
    jobs = document["jobs"].values() if "jobs" in document else [document["runs"]]
    for job in jobs:
        yield from job.get("steps", ())
