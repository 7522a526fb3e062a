"""What this attnbench is, as one line of JSON: `python -m attnbench.harness.process.fingerprint`.

Imports nothing that needs another package.
"""

import json
import subprocess
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from ... import __version__
from ..rows.run_files import SCHEMA
from .command import run_command

GIT_S = 10.0
MEASURING = ("harness", "impls")
"""The folders whose code makes a number."""


def fingerprint() -> dict[str, str | int]:
    """Version, row format, and a digest of the code, since checkouts of a version may differ."""
    package = Path(__file__).parents[2]
    digest = sha256()
    for path in sorted(path for folder in MEASURING for path in (package / folder).rglob("*.py")):
        digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return {"attnbench": __version__, "schema": SCHEMA, "code": digest.hexdigest()[:12]}


def git_commit() -> str | None:
    """The commit of this package's checkout; None if it is not a checkout."""
    here = Path(__file__).resolve().parents[2]
    if (here / ".git").exists():
        with suppress(OSError, subprocess.TimeoutExpired):
            git = ["git", "-C", str(here), "rev-parse", "--short=12", "HEAD"]
            return run_command(git, timeout_s=GIT_S).stdout.strip() or None
    return None


if __name__ == "__main__":
    print(json.dumps(fingerprint()))  # noqa: T201 - the answer
