"""What this machine is and lacks, as JSON on stdout: `python -m tests.gpu_day.machine`.

A process of its own: whoever asks torch for a GPU keeps some of its memory.
"""

import json
import platform
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WHEELS = ROOT / ".whl"
SITE = ROOT / ".site" / str(sys.implementation.cache_tag)  # compiled wheels fit one Python only
NEEDED_TOO = ("triton", "pytest", "pytest-xdist")


def unpack(wheels: Path = WHEELS, site: Path = SITE) -> None:
    """What `make wheels` collected, once. Raises CalledProcessError if pip refuses one."""
    found = sorted(map(str, wheels.glob("*.whl")))
    if found and not site.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        pip += ["--no-index", "--no-deps", "--target", str(site), *found]
        subprocess.run(pip, check=True, stdin=subprocess.DEVNULL)


def facts() -> dict[str, Any]:
    smi = said("nvidia-smi", "-q")
    driver = re.search(r"Driver Version\s*:\s*(\S+)", smi or "")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [re.split(r"[>=<~]", one)[0] for one in project["dependencies"]]
    found: dict[str, Any] = {
        **dict.fromkeys(("gpu", "capability", "memory_bytes", "torch")),
        "python": platform.python_version(),
        "machine": platform.platform(),
        "packages": {name: installed(name) for name in (*needed, *NEEDED_TOO)},
        "smi": smi,
        "driver": driver[1] if driver else None,
    }
    found["triton"] = found["packages"]["triton"]
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
        found["torch_error"] = f"{type(error).__name__}: {error}"
    return found


def installed(name: str) -> str | None:
    with suppress(PackageNotFoundError):
        return version(name)
    return None


def said(*command: str) -> str | None:
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=True
        ).stdout
    return None


if __name__ == "__main__":
    print(json.dumps(facts()))
