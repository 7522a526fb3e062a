"""The list of backends is kept until something that it depends on changes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from attnbench.harness.cli import backend_list
from attnbench.harness.cli.backend_list import Listing, listing
from tests.conftest import environment

CODE = (
    "import sys; from attnbench.harness.cli.app import app; app(standalone_mode=False);"
    " print('torch' in sys.modules)"
)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The devices that were asked about; a folder of backends is set, and a home for the cache."""
    devices: list[str] = []

    def ask(device: str) -> Listing:
        devices.append(device)
        return Listing(device=device, rows=(("mine", "", "exact", "yes", f"asked {len(devices)}"),))

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.py").write_text("def prepare(p, i, w): ...\n")
    monkeypatch.setenv("ATTNBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path / "mine"))
    monkeypatch.setattr(backend_list, "_asked", ask)
    return devices


def test_what_was_found_is_kept(asked):
    first = listing("cpu")
    assert listing("cpu") == first
    assert asked == ["cpu"]
    assert listing("cpu", refresh=True).rows[0][-1] == "asked 2"
    assert listing("cpu").rows[0][-1] == "asked 2"


def test_another_device_is_another_list(asked):
    assert [listing(device).device for device in ("cpu", "auto", "cpu")] == ["cpu", "auto", "cpu"]
    assert asked == ["cpu", "auto"]


def test_a_changed_backend_is_asked_again(asked, tmp_path):
    listing("cpu")
    (tmp_path / "mine" / "mine.py").write_text("def prepare(problem, inputs, weights): ...\n")
    listing("cpu")
    (tmp_path / "mine" / "another.py").write_text("def prepare(p, i, w): ...\n")
    listing("cpu")
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [("ATTNBENCH_BACKENDS", ""), ("CUDA_VISIBLE_DEVICES", "7"), ("CXX", "another-g++")],
)
def test_another_setting_is_asked_again(asked, monkeypatch, name, value):
    listing("cpu")
    monkeypatch.setenv(name, value)
    listing("cpu")
    assert len(asked) == 2


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


def test_a_home_that_cannot_be_written_is_no_error(asked, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTNBENCH_CACHE", str(tmp_path / "file"))
    assert listing("cpu").device == "cpu"


def test_the_second_list_imports_no_torch(tmp_path):
    def listed() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", CODE, "list", "backends", "--device", "cpu"],
            env=environment({"ATTNBENCH_CACHE": str(tmp_path), "ATTNBENCH_BACKENDS": ""}),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    first, second = listed(), listed()
    assert (first[-1], second[-1]) == ("True", "False")
    assert first[:-1] == second[:-1]
    assert any(line.startswith("sdpa:flash") for line in second)
    assert (Path(tmp_path) / "backends-cpu.json").is_file()
