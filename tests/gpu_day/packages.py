"""Packages that a machine without a network lacks, from the wheels that `make wheels` collects."""

import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .commands import ROOT

WHEELS = ROOT / ".whl"
SITE = ROOT / ".site" / str(sys.implementation.cache_tag)  # compiled wheels fit one Python only


def unpack(python: str, wheels: Path = WHEELS, site: Path = SITE) -> list[str]:
    """Install those wheels into `site` that are not installed here; their names.

    Raises CalledProcessError if pip refuses one.
    """
    missing = [path for path in sorted(wheels.glob("*.whl")) if not is_here(path, site)]
    if missing:
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--no-index", "--no-deps", "--upgrade", "--target", str(site)]
        subprocess.run([*command, *map(str, missing)], check=True, stdin=subprocess.DEVNULL)
    return [path.name for path in missing]


def is_here(wheel: Path, site: Path) -> bool:
    """Whether this interpreter or `site` has the package, in any version."""
    name = name_of(wheel)
    folder = name.replace("-", "_").replace(".", "_").lower()
    if any(one.name.lower().startswith(f"{folder}-") for one in site.glob("*.dist-info")):
        return True
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def name_of(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as file:
        (metadata,) = [one for one in file.namelist() if one.endswith(".dist-info/METADATA")]
        return str(Parser().parsestr(file.read(metadata).decode())["Name"])
