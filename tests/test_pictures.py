"""docs/pictures.py: the README's pictures can be drawn anew, the README shows them, and they are
those of the kept run as pages show it now.
"""

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from attnbench.reports.pages.html import render
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


def test_every_picture_is_drawn_from_a_run(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("chromium")
    docs = tmp_path / "docs"
    docs.mkdir()
    place = docs / "pictures.py"
    place.write_text((ROOT / "docs" / "pictures.py").read_text())
    (tmp_path / "README.md").write_text(README.read_text())
    run = quickstart(tmp_path, lengths=(512, 2048, 8192))
    done = ran([sys.executable, place, run], check=True)
    shown = {Path(line).name for line in done.stdout.split()}
    assert (
        shown == {"wall.png", "heads.png"} == set(json.loads((docs / "pictures.json").read_text()))
    )
    assert all((docs / name).read_bytes().startswith(PNG) for name in shown)
    assert all(f"](docs/{name})" in README.read_text() for name in shown)
    text = " ".join((tmp_path / "README.md").read_text().split())
    assert " ".join(open_report([run]).answer.split()) in text


def test_the_readmes_pictures_and_answer_are_those_of_the_kept_run(program: ModuleType) -> None:
    run = program.newest_quickstart()
    drawn = json.loads((ROOT / "docs" / program.DRAWN).read_text())
    assert drawn == program.digests(render(open_report([run]))), "make pictures"
    assert README.read_text() == program.with_answer(README.read_text(), run), "make pictures"


def test_another_value_or_drawing_makes_a_picture_old(program: ModuleType) -> None:
    page = render(open_report([program.newest_quickstart()]))
    before = program.digests(page)
    assert before == program.digests(page.replace("</main>", " </main>"))
    after = program.digests(page.replace("stops at", "ends at"))
    assert before["wall.png"] != after["wall.png"]
    assert before["heads.png"] == after["heads.png"]
