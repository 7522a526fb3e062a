"""The folder for what can be asked again, only slower: $ATTNBENCH_CACHE, or in the user's cache;
and a digest of what is installed here: whatever was asked of it holds until that changes.
"""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from ... import __version__


def cache_folder() -> Path:
    """It need not exist."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("ATTNBENCH_CACHE") or Path(home) / "attnbench")


PACKAGE = Path(__file__).resolve().parent.parent.parent
SETTINGS = (
    *("ATTNBENCH_BACKENDS", "CUDA_VISIBLE_DEVICES", "CXX", "PATH", "PYTHONPATH"),
    "OMP_NUM_THREADS",
)
DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/proc/driver/nvidia/version")


def installed_digest(**facts: Any) -> str:
    """Of our files, packages, compilers, drivers and settings, and of other `facts`."""
    folders = os.environ.get("ATTNBENCH_BACKENDS", "").split(os.pathsep)
    ours = [path for name in ("impls", "harness") for path in (PACKAGE / name).rglob("*.py")]
    users = [path for folder in filter(None, folders) for path in Path(folder).glob("*.py")]
    # installing or removing a package changes the folder that it is in
    packages = [Path(folder) for folder in sys.path if "-packages" in Path(folder).name]
    known = {
        **facts,
        "attnbench": __version__,
        "python": sys.executable,
        "files": [_stamp(path) for path in sorted([*ours, *users])],
        "packages": [_stamp(path) for path in packages],
        "drivers": [Path(path).exists() for path in DRIVERS],
        "settings": {name: os.environ.get(name) for name in SETTINGS},
        "compilers": [shutil.which(name) for name in _compilers()],
    }
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


def _compilers() -> tuple[str, ...]:
    """Those that torch.compile and Triton look for."""
    return os.environ.get("CXX") or "g++", os.environ.get("CC") or "gcc", "clang"


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        stat = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), stat.st_mtime_ns, stat.st_size if path.is_file() else 0
