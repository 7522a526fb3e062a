"""What this machine is and lacks, as JSON on stdout: `python -m tests.gpu_day.machine`.

A process of its own: whoever asks torch for a GPU keeps some of its memory.
"""

import json
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NEEDED_TOO = ("triton", "pytest", "pytest-xdist")
IDENTITY = ("gpu", "capability", "driver", "python", "torch", "triton")
"""Where these differ, nothing that was measured belongs together."""


def facts() -> dict[str, Any]:
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "executable": sys.executable,
        "machine": platform.platform(),
        "packages": versions(),
        "gcc": shutil.which("gcc") or shutil.which("cc"),  # Triton builds its launchers with it
        "smi": said("nvidia-smi", "-q"),
        "gpu": None,
        "capability": None,
        "memory_bytes": None,
    }
    driver = re.search(r"Driver Version\s*:\s*(\S+)", found["smi"] or "")
    found |= {"driver": driver[1] if driver else None, "triton": found["packages"].get("triton")}
    try:
        import torch

        found["torch"] = str(torch.__version__)
        if torch.cuda.is_available():
            major, minor = torch.cuda.get_device_capability()
            found |= {
                "gpu": torch.cuda.get_device_name(),
                "capability": f"{10 * major + minor}",
                "memory_bytes": torch.cuda.get_device_properties().total_memory,
                "cuda": torch.version.cuda,
                "cudnn": torch.backends.cudnn.version(),
            }
    except Exception as error:  # noqa: BLE001 - a broken torch is what is wanted to be known
        found["torch"] = None
        found["torch_error"] = f"{type(error).__name__}: {error}"
    return found


def versions() -> dict[str, str | None]:
    """Of the packages that a day needs; None: not installed."""
    return {name: installed(name) for name in (*requirements(), *NEEDED_TOO)}


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def requirements() -> dict[str, str]:
    """The packages that attnbench needs, each with the lowest version that works."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return dict(one.split(">=") for one in project["dependencies"])


def lacks(packages: dict[str, str | None]) -> list[str]:
    """What is missing or too old, in words."""
    wanted = requirements() | dict.fromkeys(NEEDED_TOO, "")
    found = []
    for name, lowest in wanted.items():
        here = packages.get(name)
        if here is None:
            found.append(f"{name}: not installed")
        elif numbers(here) < numbers(lowest):
            found.append(f"{name}: {here}, wanted {lowest} or newer")
    return found


def numbers(text: str) -> list[int]:
    """Of a version, up to its first part that is none."""
    found = re.match(r"\d+(\.\d+)*", text)
    return [int(one) for one in found[0].split(".")] if found else []


def said(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


if __name__ == "__main__":
    print(json.dumps(facts()))
