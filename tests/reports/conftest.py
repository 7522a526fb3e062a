"""Fixtures of the report tests."""

import os
import shutil
from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def require() -> Callable[[str], str]:
    """`require("chromium")`: the program's path; skips where it is missing, fails there if ATTNBENCH_REQUIRE names it."""

    def find(program: str) -> str:
        path = shutil.which(program)
        if path is None:
            if program in os.environ.get("ATTNBENCH_REQUIRE", "").split(","):
                pytest.fail(f"{program} is not installed, and ATTNBENCH_REQUIRE asks for it")
            pytest.skip(f"needs {program}: apt-get install {program}")
        return path

    return find
