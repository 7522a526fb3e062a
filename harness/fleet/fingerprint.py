"""What this attnbench is, and how one elsewhere differs from it."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ... import __version__
from ..files.errors import shown
from ..rows.run_files import SCHEMA

MEASURING = ("harness", "impls")
"""The folders whose code makes a number."""


def fingerprint() -> dict[str, str | int]:
    """Version, row format, and a digest of the code, since checkouts of a version may differ."""
    package = Path(__file__).parents[2]
    digest = sha256()
    for path in sorted(path for folder in MEASURING for path in (package / folder).rglob("*.py")):
        digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return {"attnbench": __version__, "schema": SCHEMA, "code": digest.hexdigest()[:12]}


def difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """How another attnbench differs from ours, by their fingerprints; "" if it is the same."""
    if theirs["attnbench"] != ours["attnbench"]:
        return f"has attnbench {shown(theirs['attnbench'])}"
    same_version = f"attnbench {ours['attnbench']}"
    if theirs["schema"] != ours["schema"]:
        schemas = f"{shown(theirs['schema'])}, not {ours['schema']}"
        return f"has {same_version} with rows of format {schemas}"
    return "" if theirs["code"] == ours["code"] else f"has {same_version} with different code"
