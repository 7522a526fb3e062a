#!/usr/bin/env python3
"""The lowest versions that pyproject.toml allows, as constraints for pip.

Names of extras add what they need: floors.py parquet hf pytest.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def floors(*extras: str) -> list[str]:
    """name==version for each requirement name>=version. Raises ValueError for one without."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    found = []
    for requirement in wanted:
        parts = re.fullmatch(r"([\w.-]+)>=([\d.]+)", requirement)
        if parts is None:
            raise ValueError(f"pyproject.toml: {requirement}: wanted name>=version")
        found.append(f"{parts[1]}=={parts[2]}")
    return found


if __name__ == "__main__":
    print("\n".join(floors(*sys.argv[1:])))
