"""Where processes that tests start look for packages."""

import os
from pathlib import Path


def searched(*first: str | Path) -> str:
    """A PYTHONPATH of these folders and then those of this process: what was installed with `pip
    install --target` is found only through them.
    """
    users = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(dict.fromkeys([*map(str, first), *filter(None, users)]))
