"""Before anything is packed: are the links of this folder links? And where is the project's home?
hatchling loads this file.
"""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

FOLDERS = ("harness", "impls", "reports", "scenarios", "cheats")


class Links(BuildHookInterface):
    """Ends the build where links were checked out or unpacked as text files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        package = Path(self.root) / ".package" / "attnbench"
        broken = [name for name in FOLDERS if not (package / name).is_dir()]
        if broken:
            raise SystemExit(
                f".package/attnbench/{broken[0]}: found no folder; wanted a symbolic link to one."
                " This checkout or archive has its links as text files: run `git config"
                " core.symlinks true` and then `git checkout -- .package` (on Windows in developer"
                " mode), or install a released wheel"
            )


class Home(MetadataHookInterface):
    """The repository that a release is built in, so that a fork names itself; elsewhere none."""

    def update(self, metadata: dict[str, Any]) -> None:
        server, name = (os.environ.get(f"GITHUB_{one}") for one in ("SERVER_URL", "REPOSITORY"))
        if server and name:
            home = f"{server}/{name}"
            metadata["urls"] = {
                "Source": home,
                "Documentation": f"{home}/tree/HEAD/docs",
                "Changelog": f"{home}/blob/HEAD/CHANGELOG.md",
                "Issues": f"{home}/issues",
            }
