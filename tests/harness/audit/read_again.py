"""Audit one kernel again and again; print as JSON what was found, and which tools were asked.

`python -m tests.harness.audit.read_again`: a process of its own, so that no other test imports
triton. Its cache must be empty. The kernel is one that ptxas has notes on (serialized.py).
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch
from triton import knobs

from attnbench.impls._triton import nvidia_tools
from tests.harness.audit.serialized import audited, without_conditions


def audits() -> dict[str, Any]:
    from attnbench.harness.audit import readings

    asked: list[str] = []
    run, tool_path = nvidia_tools.run, nvidia_tools.tool_path

    def noted(command: list[str], **how: Any) -> str:
        name = Path(command[0]).name
        asked.append("ptxas" if name.startswith("ptxas") and "-v" in command else name)
        return run(command, **how)

    def no_nvdisasm(tool: str) -> str:
        if tool == "nvdisasm":
            raise nvidia_tools.Unreadable("there is none")
        return tool_path(tool)

    def audit() -> dict[str, Any]:
        asked.clear()
        found = audited()
        kept = sorted(Path(str(knobs.cache.dir)).glob(f"*/{readings.FILE}"))
        return {"found": found, "asked": sorted(set(asked)), "kept": len(kept)}

    with patch.object(nvidia_tools, "run", noted), patch.object(readings, "run", noted):
        results = {"first": audit(), "second": audit()}
        for path in Path(str(knobs.cache.dir)).glob(f"*/{readings.FILE}"):
            path.write_text('{"found": ')
        results["broken"] = audit()
        with patch.object(nvidia_tools, "tool_path", no_nvdisasm):
            results["no_nvdisasm"] = audit()
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        without_conditions(Path(folder))
        print(json.dumps(audits()))
