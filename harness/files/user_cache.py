"""The folder for what can be asked again, only slower: $ATTNBENCH_CACHE, or in the user's cache."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """It need not exist."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("ATTNBENCH_CACHE") or Path(home) / "attnbench")
