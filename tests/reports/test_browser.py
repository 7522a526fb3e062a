"""The page in a real browser: it opens from disk, fits a telephone, and turns dark."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from attnbench.reports.html import write

from .fake_runs import quickstart

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--hide-scrollbars", "--virtual-time-budget=3000"),
)
# The page forbids scripts, so what the browser laid out is asked from a page around it.
PROBE = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
<iframe id="page" src="page.html" style="border:0;width:{width}px;height:900px"></iframe><pre id="out"></pre><script>
document.getElementById("page").onload = event => {{
  const inside = event.target.contentDocument, root = inside.documentElement, view = event.target.contentWindow
  const style = element => view.getComputedStyle(element)
  document.getElementById("out").textContent = JSON.stringify([root.scrollWidth, root.clientWidth, style(root).backgroundColor,
    style(root).color, style(inside.querySelector("svg text")).fill, inside.querySelectorAll("figure svg").length])
}}
</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    return write(quickstart(folder), folder / "page.html")


def ask(chromium: str, page: Path, tmp_path: Path, width: int, *flags: str) -> list[str]:
    probe = page.with_name(f"probe-{width}.html")
    probe.write_text(PROBE.format(width=width))
    command = [chromium, *FLAGS, f"--user-data-dir={tmp_path}", "--allow-file-access-from-files", *flags, "--dump-dom", probe.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    found = re.search(r'<pre id="out">\[(.*)\]</pre>', dom)
    assert found is not None, dom[-2000:]
    return re.findall(r'"[^"]*"|[^,]+', found.group(1))


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_no_width_overflows(require: Callable[[str], str], page: Path, tmp_path: Path, width: int) -> None:
    scroll_width, client_width, *_, figures = ask(require("chromium"), page, tmp_path, width)
    assert client_width == str(width)
    assert scroll_width == client_width
    assert figures == "6"


def test_light_and_dark_follow_the_reader_and_so_do_the_figures(require: Callable[[str], str], page: Path, tmp_path: Path) -> None:
    for flag, paper, ink in (("1", '"rgb(255, 255, 255)"', '"rgb(26, 28, 31)"'), ("0", '"rgb(18, 18, 18)"', '"rgb(230, 231, 233)"')):
        settings = f"--blink-settings=preferredColorScheme={flag}"
        _, _, background, color, text, _ = ask(require("chromium"), page, tmp_path / flag, 800, settings)
        assert (background, color, text) == (paper, ink, ink)


def test_it_can_be_photographed(require: Callable[[str], str], page: Path, tmp_path: Path) -> None:
    shot = tmp_path / "shot.png"
    command = [
        require("chromium"),
        *FLAGS,
        f"--user-data-dir={tmp_path / 'user'}",
        f"--screenshot={shot}",
        "--window-size=1280,2000",
        page.as_uri(),
    ]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert shot.read_bytes().startswith(b"\x89PNG")
    assert shot.stat().st_size > 50_000
