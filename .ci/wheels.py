#!/usr/bin/env python3
"""`make wheels`: collect into .whl what a GPU's machine without a network lacks.

That is attnbench's dependencies, with theirs, as they are installed here, without the names in
.ci/gpu_machine.txt; in the versions of constraints.txt, for CPython 3.12 on Linux.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
THERE = ROOT / ".ci" / "gpu_machine.txt"
PYTHON, FULL_VERSION = "3.12", "3.12.0"
# pip takes a wheel only for a platform that is named, and does not know that newer ones run older
GLIBC = (28, 27, 26, 24, 17, 12, 5)
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in GLIBC]
PLATFORMS += [f"{name}_x86_64" for name in ("manylinux2014", "manylinux2010", "manylinux1")]
ABIS = ("cp312", "abi3", "none")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=ROOT / ".whl")
    options.add_argument("--names", action="store_true", help="print them, and download nothing")
    given = options.parse_args()
    pinned = pins((ROOT / "constraints.txt").read_text())
    if unknown := [name for name in lacking() if name not in pinned]:
        sys.exit(f"constraints.txt: has no version of {', '.join(unknown)}; wanted one to collect")
    wanted = [f"{name}=={pinned[name]}" for name in lacking()]
    if given.names:
        print("\n".join(wanted))
        return
    shutil.rmtree(given.out, ignore_errors=True)
    subprocess.run(download(wanted, given.out), check=True)
    for path in sorted(given.out.iterdir()):
        print(path)


def lacking() -> list[str]:
    """The names, sorted."""
    return sorted(needed() - there())


def there() -> set[str]:
    """The names in the list of packages that such a machine has."""
    lines = THERE.read_text().splitlines()
    return {plain(name) for line in lines if not line.startswith("#") for name in line.split()}


def needed() -> set[str]:
    """attnbench's dependencies, and theirs, by what is installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: set[str] = set()
    left = names_in(project["dependencies"])
    known = there()
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            if name not in known:  # what it needs itself is there with it
                left |= names_in(requires(name) or ())
    return found


def names_in(requirements: Iterable[str]) -> set[str]:
    """Without those for other systems and for extras."""
    here = {
        "python_version": PYTHON,
        "python_full_version": FULL_VERSION,
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
        "extra": "",
    }
    parsed = map(Requirement, requirements)
    return {plain(one.name) for one in parsed if not one.marker or one.marker.evaluate(here)}


def pins(constraints: str) -> dict[str, str]:
    """Versions by name."""
    found = re.findall(r"^([\w.-]+)==(\S+)", constraints, re.MULTILINE)
    return {plain(name): version for name, version in found}


def plain(name: str) -> str:
    """As all names are compared (PyPA, Names and normalization)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def download(wanted: Iterable[str], folder: Path) -> list[str]:
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    words += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    words += ["--implementation", "cp", "--python-version", PYTHON]
    words += [word for abi in ABIS for word in ("--abi", abi)]
    words += [word for platform in PLATFORMS for word in ("--platform", platform)]
    return [*words, *wanted]


if __name__ == "__main__":
    main()
