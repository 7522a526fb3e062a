"""docs/pictures.py: the README's pictures can be drawn anew, the README shows them, and they are
those of the kept run as pages show it now.
"""

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from attnbench.reports.pages.report import open_report
from tests.conftest import ROOT, ran
from tests.made_runs import quickstart

PNG = b"\x89PNG\r\n"
README = ROOT / "README.md"
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def program() -> ModuleType:
    pytest.importorskip("playwright", reason="needs playwright: make")
    place = ROOT / "docs" / "pictures.py"
    found = importlib.util.spec_from_file_location("pictures", place)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.nightly
def test_every_picture_is_drawn_from_a_run(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("chromium")
    docs = tmp_path / "docs"
    docs.mkdir()
    place = docs / "pictures.py"
    place.write_text((ROOT / "docs" / "pictures.py").read_text())
    (tmp_path / "README.md").write_text(README.read_text())
    kept = tmp_path / "results" / "reference"
    for device, longest in (("cpu", 8192), ("h200", 16384)):
        run = quickstart(tmp_path / device, lengths=(512, 2048, longest))
        shutil.copytree(run, kept / f"{device}-20260101-quickstart")
    done = ran([sys.executable, place], check=True)
    shown = {Path(line).name for line in done.stdout.split()}
    names = {"wall.png", "heads.png"}
    assert shown == names == set(json.loads((docs / "pictures.json").read_text()))
    assert all((docs / name).read_bytes().startswith(PNG) for name in shown)
    assert all(f"](docs/{name})" in README.read_text() for name in shown)
    text = " ".join((tmp_path / "README.md").read_text().split())
    (run,) = kept.glob("cpu-*")
    assert " ".join(open_report([run]).answer.split()) in text


def test_the_readmes_pictures_and_answer_are_those_of_the_kept_run(program: ModuleType) -> None:
    drawn = json.loads((ROOT / "docs" / program.DRAWN).read_text())
    assert drawn == {
        file: digest
        for device, cards in program.CARDS.items()
        for file, digest in program.digests(
            program.page_of(program.newest_quickstart(device)), cards
        ).items()
    }, "make pictures"
    assert README.read_text() == program.with_answer(README.read_text()), "make pictures"
