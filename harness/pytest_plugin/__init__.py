"""The pytest plugin: scenario files become tests, reported by pytest-benchmark (docs/pytest.md).

This file is loaded in every pytest session of an environment that has attnbench. What measures is
imported with the first scenario file, what checks options with the first that is given.
"""

import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .options import add_options, given, requested

if TYPE_CHECKING:
    from .items import ScenarioFile

ENTRY_POINT = "attnbench"  # in the group pytest11 of pyproject.toml
SESSION = "attnbench session"
OWN_SUFFIXES = (".scenario.yaml", ".scenario.yml")
MAX_BYTES = 1 << 20  # of a scenario
MODELINE = re.compile(rb"^#[ \t]*yaml-language-server:[ \t]*\$schema=(\S+)", re.MULTILINE)
OUR_SCHEMA = b'"title": "attnbench scenario"'  # in the file that the line above names
FEWEST_KEYS = 3  # one may be missing or misspelt: the file is collected, and the mistake reported
TOP_KEYS = rb"""["']?(name|question|backends|grid)["']?[ \t]*:"""
IN_BLOCK_STYLE = re.compile(rb"^" + TOP_KEYS, re.MULTILINE)
IN_FLOW_STYLE = re.compile(rb"[{,]\s*" + TOP_KEYS)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    if pluginmanager.get_name(sys.modules[__name__]) != ENTRY_POINT:
        # Loaded with -p: the entry point, which is read later, must not register it again.
        pluginmanager.set_blocked(ENTRY_POINT)
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "gpu: measured on a GPU",
        "backend(name): the backend that a case measures",
        "dtype(name): fp32, bf16 or fp16",
    ):
        config.addinivalue_line("markers", line)
    if given(config):
        requested(config)  # refuses what is misspelt before anything is collected


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ScenarioFile | None":
    if file_path.suffix not in (".yaml", ".yml") or not is_ours(file_path, parent):
        return None
    from .items import ScenarioFile
    from .session import Session

    plugins = parent.config.pluginmanager
    if not plugins.has_plugin(SESSION):
        plugins.register(Session(parent.config), SESSION)
    return ScenarioFile.from_parent(parent, path=file_path)


def is_ours(path: Path, parent: pytest.Collector) -> bool:
    """Whether a YAML file is ours to collect; another plugin's file must go to that plugin.

    In a folder similar keys are not enough: what is no scenario would end the session.
    """
    own = path.name.endswith(OWN_SUFFIXES)
    if parent.session.isinitpath(path):
        return own or names_our_schema(path) or looks_like_a_scenario(path)
    if own and names_our_schema(path):
        return True
    root, patterns = parent.config.rootpath, given(parent.config).get("scenarios", ())
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def names_our_schema(path: Path) -> bool:
    """By the comment that editors read: it names attnbench, or a file with our schema."""
    found = MODELINE.search(beginning(path))
    if found is None:
        return False
    name = found[1].decode(errors="replace")
    return "attnbench" in name or (
        "://" not in name and "\0" not in name and OUR_SCHEMA in beginning(path.parent / name)
    )


def beginning(path: Path) -> bytes:
    """Of a regular file; of anything else nothing, so that nobody waits for a FIFO."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(MAX_BYTES).removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return b""


def looks_like_a_scenario(path: Path) -> bool:
    """By its top-level keys, without parsing it: a broken scenario is still one."""
    content = beginning(path)
    pattern = IN_FLOW_STYLE if content.lstrip().startswith(b"{") else IN_BLOCK_STYLE
    return len(set(pattern.findall(content))) >= FEWEST_KEYS
