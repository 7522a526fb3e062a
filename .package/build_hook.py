"""Before anything is packed: are the links of this folder links? And where is the project's home?
hatchling loads this file.
"""

import os
import re
from pathlib import Path
from runpy import run_path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"(!?)\[([^\]]+)\]\((?!\w+:|#)([^)\s]+)\)")
"""A link or a picture of Markdown that leads into the repository: mark, words, path."""


class Links(BuildHookInterface):
    """Ends the build where links were checked out or unpacked as text files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        try:
            run_path(str(Path(self.root) / ".package" / "attnbench" / "__init__.py"))
        except ImportError as error:
            raise SystemExit(str(error)) from None


class Home(MetadataHookInterface):
    """The repository that a release is built in, so that a fork names itself; elsewhere none."""

    def update(self, metadata: dict[str, Any]) -> None:
        if address := home():
            metadata["urls"] = {
                "Source": address,
                "Documentation": f"{address}/tree/HEAD/docs",
                "Changelog": f"{address}/blob/HEAD/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
        if "readme" not in metadata:  # an sdist brings its own
            text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
            metadata["readme"] = {"content-type": "text/markdown", "text": elsewhere(text)}


def home() -> str:
    """The repository's address; "" if it is not known."""
    server, name = (os.environ.get(f"GITHUB_{one}") for one in ("SERVER_URL", "REPOSITORY"))
    return f"{server}/{name}" if server and name else ""


def elsewhere(text: str) -> str:
    """Markdown as a package index or a release shows it, where relative links lead nowhere: they
    lead to this commit's files in the repository. If that is not known, they are words, and
    pictures are left out.
    """
    address, commit = home(), os.environ.get("GITHUB_SHA") or "HEAD"

    def absolute(found: re.Match[str]) -> str:
        mark, words, path = found.groups()
        if not address:
            return "" if mark else words
        return f"{mark}[{words}]({address}/{'raw' if mark else 'blob'}/{commit}/{path})"

    return RELATIVE.sub(absolute, text)
