"""docs/pictures.py: the README's pictures can be drawn anew, and the README shows them."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, ran
from tests.made_runs import quickstart

PNG = b"\x89PNG\r\n"


@pytest.mark.long
def test_every_picture_is_drawn_from_a_run(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("chromium")
    (tmp_path / "docs").mkdir()
    program = tmp_path / "docs" / "pictures.py"
    program.write_text((ROOT / "docs" / "pictures.py").read_text())
    run = quickstart(tmp_path, lengths=(512, 2048, 8192))
    command = [sys.executable, str(program), str(run)]
    done = ran(command)
    assert done.returncode == 0, done.stderr
    drawn = [Path(line) for line in done.stdout.split()]
    shown = {path.name for path in drawn}
    assert shown == {"wall.png", "heads.png"}
    assert all((tmp_path / "docs" / name).read_bytes().startswith(PNG) for name in shown)
    readme = (ROOT / "README.md").read_text()
    assert all(f"](docs/{name})" in readme for name in shown)
