"""The pytest plugin: scenario files become tests, reported by pytest-benchmark (docs/ci.md).

This file is loaded in every pytest session of an environment that has attnbench. What measures is
imported with the first scenario file, what checks options with the first that is given.
"""

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .options import given, requested
from .options import pytest_addoption as pytest_addoption  # a hook

if TYPE_CHECKING:
    from .runs import ScenarioFile

MARKS = (
    "gpu: measured on a GPU",
    "backend(name): the backend that a case measures",
    "dtype(name): fp32, bf16 or fp16",
)
OWN_SUFFIXES = (".scenario.yaml", ".scenario.yml")
MAX_BYTES = 1 << 20  # of a scenario
KEYS = rb"""["']?(name|question|backends|grid)["']?[ \t]*:"""
IN_BLOCKS, IN_BRACES = re.compile(rb"^" + KEYS, re.MULTILINE), re.compile(rb"[{,]\s*" + KEYS)
FEWEST_KEYS = 3  # one may be missing or misspelt: the file is collected, and the mistake reported


def pytest_configure(config: pytest.Config) -> None:
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    requested(config)  # refuses what is misspelt before anything is collected


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ScenarioFile | None":
    if file_path.suffix not in (".yaml", ".yml") or not is_ours(file_path, parent):
        return None
    from .runs import ScenarioFile

    parent.config.pluginmanager.import_plugin(f"{__name__}.runs")
    return ScenarioFile.from_parent(parent, path=file_path)


def is_ours(path: Path, parent: pytest.Collector) -> bool:
    """Whether a YAML file is ours to collect; another plugin's file must go to that plugin.

    One sign is not enough: what is no scenario would end the session.
    """
    root, patterns = parent.config.rootpath, given(parent.config).get("scenarios", ())
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
    chosen = any(fnmatchcase(name, pattern) for pattern in patterns)
    named, own = parent.session.isinitpath(path), path.name.endswith(OWN_SUFFIXES)
    return chosen or (named and own) or ((named or own) and has_our_keys(path))


def has_our_keys(path: Path) -> bool:
    """At its top, without parsing it: a broken scenario is still one."""
    if not path.is_file():  # nobody waits for a FIFO
        return False
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES).removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return False
    keys = IN_BRACES if text.lstrip().startswith(b"{") else IN_BLOCKS
    return len(set(keys.findall(text))) >= FEWEST_KEYS
