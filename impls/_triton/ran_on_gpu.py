"""Which kernels a GPU has run as they are now: ran_on_gpu.json, which `make gpu` fills. Imports
neither torch nor triton.

A kernel is known by the hash of its source, its configuration and Triton's version.
"""

import json
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .configs import Config, Kernel, listed

FILE = Path(__file__).with_name("ran_on_gpu.json")
SOURCES = {"forward": "forward.py", "grad_q": "backward.py", "grad_kv": "backward.py"}


def not_yet_run() -> str:
    """A sentence; "" if all were."""
    every = [digest(*one) for one in listed()]
    lacking = set(every) - set(json.loads(FILE.read_text())["ran"])
    if not lacking:
        return ""
    return f"{len(lacking)} of {len(every)} kernels not yet run on a GPU with Triton {triton()}"


def digest(kernel: Kernel, config: Config) -> str:
    """Of a kernel in a configuration, compiled by the installed Triton."""
    text = f"{_source(kernel, gluon=config.gluon)} {kernel} {config} {triton()}"
    return sha256(text.encode()).hexdigest()


@cache
def triton() -> str:
    """The installed version, or none."""
    try:
        return version("triton")
    except PackageNotFoundError:
        return "none"


@cache
def _source(kernel: Kernel, *, gluon: bool) -> str:
    names = ["hopper_forward.py"] if gluon else ["kernels/tiles.py", f"kernels/{SOURCES[kernel]}"]
    return "\n".join((FILE.parent / name).read_text() for name in names)
