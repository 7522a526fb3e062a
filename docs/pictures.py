"""Draw the README's pictures anew from a stored run: `make pictures`, or `pictures.py RUN`.

They are photographs of the page's own cards, so they cannot show what a page no longer has. Needs
Debian's chromium, and attnbench with its test tools.
"""

import sys
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from attnbench.reports.pages import html
from attnbench.reports.pages.report import open_report

DOCS = Path(__file__).parent
RUN = DOCS.parent / "results" / "reference" / "cpu-20261121-quickstart"
CARDS = {"wall": "wall.png", "heads": "heads.png"}
WINDOW = {"width": 1280, "height": 900}
PIXELS_PER_POINT = 1.5


def pictures(run: Path, folder: Path) -> list[Path]:
    """Write each card of CARDS that the run's page has; the paths. Raises BadRun."""
    program = which("chromium")
    if program is None:
        sys.exit("pictures: no chromium; install it with `apt install chromium`")
    written = []
    with TemporaryDirectory() as place, sync_playwright() as player:
        page_path = Path(place) / "page.html"
        page_path.write_text(html.render(open_report([run])), encoding="utf-8")
        browser = player.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW, device_scale_factor=PIXELS_PER_POINT)
        page.goto(page_path.as_uri())
        for name, file in CARDS.items():
            card = page.locator(f"section#card-{name}")
            if card.count():
                card.screenshot(path=folder / file)
                written.append(folder / file)
        browser.close()
    return written


if __name__ == "__main__":
    for path in pictures(Path(sys.argv[1]) if len(sys.argv) > 1 else RUN, DOCS):
        sys.stdout.write(f"{path}\n")
