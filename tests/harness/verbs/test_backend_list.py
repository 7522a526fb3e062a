"""The list of backends is kept until something that it depends on changes."""

import json
from typing import Any

import pytest

from attnbench.harness.verbs import listing as verb
from attnbench.harness.verbs.listing import asked as listing


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The devices that were asked about; a folder of backends is set, and a home for the cache."""
    devices: list[str] = []

    def rows(device: Any) -> list[tuple[str, ...]]:
        devices.append(device.type)
        return [("mine", "", "exact", "yes", f"asked {len(devices)}")]

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.py").write_text("def prepare(p, i, w): ...\n")
    monkeypatch.setenv("ATTNBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path / "mine"))
    monkeypatch.setattr(verb, "backend_rows", rows)
    return devices


def test_what_was_found_is_kept(asked):
    first = listing("cpu")
    assert listing("cpu") == first
    assert asked == ["cpu"]
    assert listing("cpu", refresh=True)[1][0][-1] == "asked 2"
    assert listing("cpu")[1][0][-1] == "asked 2"


def test_a_changed_backend_is_asked_again(asked, tmp_path):
    listing("cpu")
    (tmp_path / "mine" / "mine.py").write_text("def prepare(problem, inputs, weights): ...\n")
    listing("cpu")
    (tmp_path / "mine" / "another.py").write_text("def prepare(p, i, w): ...\n")
    listing("cpu")
    assert len(asked) == 3


def test_an_installed_package_is_asked_again(asked, tmp_path, monkeypatch):
    packages = tmp_path / "site-packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(packages))
    listing("cpu")
    listing("cpu")
    assert len(asked) == 1
    (packages / "new_package").mkdir()
    listing("cpu")
    assert len(asked) == 2


@pytest.mark.parametrize("content", ["", "[]", '{"digest": 1}', "\x00", "DIGEST"])
def test_a_broken_file_is_replaced(asked, tmp_path, content):
    listing("cpu")
    (kept,) = (tmp_path / "cache").iterdir()
    digest = json.loads(kept.read_text())["digest"]
    kept.write_text(content.replace("DIGEST", json.dumps({"digest": digest, "rows": 3})))
    listing("cpu")
    assert len(asked) == 2
    assert json.loads(kept.read_text())["rows"][0][0] == "mine"
