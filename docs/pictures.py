"""Draw the README's pictures anew from stored runs, and their answers: `make pictures`.

They are photographs of the page's own cards, so they cannot show what a page no longer has. Beside
them, pictures.json has a digest of the cards that they show: it tells when they are not current, on
every machine, whatever its fonts. Needs Debian's chromium, and attnbench with its test tools.
"""

import hashlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright
from typer.testing import CliRunner

from attnbench.harness.cli.app import app
from attnbench.reports.pages import html
from attnbench.reports.pages.report import open_report

DOCS = Path(__file__).parent
DRAWN = "pictures.json"
CARDS = {  # of the newest quickstart that is kept of each device
    "cpu": {"wall": "wall.png", "heads": "heads.png"},
    "h200": {"wall": "wall-h200.png"},
}
WINDOW = {"width": 1280, "height": 900}
PIXELS_PER_POINT = 1.5


def newest_quickstart(device: str) -> Path:
    """Of the runs that are kept."""
    runs = (DOCS.parent / "results" / "reference").glob(f"{device}-*-quickstart")
    return max(runs, key=lambda run: json.loads((run / "run.json").read_text())["started_utc"])


def page_of(run: Path) -> str:
    return html.render(open_report([run]))


def digests(page: str, cards: Mapping[str, str]) -> dict[str, str]:
    """Of what each picture shows, as the page has it before a browser draws it."""
    found = {
        file: re.search(rf'<(\w+)[^>]*\bid="card-{name}".*?</\1>', page, re.DOTALL)
        for name, file in cards.items()
    }
    return {
        file: hashlib.sha256(card[0].encode()).hexdigest()
        for file, card in found.items()
        if card is not None
    }


def with_answers(readme: str) -> str:
    """The README with what `attnbench show` prints of each device's run."""
    for device in CARDS:
        readme = with_answer(readme, device, newest_quickstart(device))
    return readme


def with_answer(readme: str, device: str, run: Path) -> str:
    done = CliRunner().invoke(app, ["show", str(run)], env={"COLUMNS": "100"})
    shown = done.stdout.strip()
    block = re.compile(rf"(?<=<!-- answer: {device} -->\n)```text\n.*?```", re.DOTALL)
    return block.sub(lambda _: f"```text\n{shown}\n```", readme)


def pictures(page: str, cards: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    """Write each of the cards; the digests."""
    program = which("chromium")
    if program is None:
        sys.exit("pictures: no chromium; install it with `apt install chromium`")
    drawn = digests(page, cards)
    if len(drawn) < len(cards):
        sys.exit(f"pictures: the page lacks a card of {', '.join(cards)}")
    with TemporaryDirectory() as place, sync_playwright() as player:
        file = Path(place) / "page.html"
        file.write_text(page, encoding="utf-8")
        browser = player.chromium.launch(executable_path=program, args=["--no-sandbox"])
        shown = browser.new_page(viewport=WINDOW, device_scale_factor=PIXELS_PER_POINT)
        shown.goto(file.as_uri())
        for name, picture in cards.items():
            shown.locator(f"#card-{name}").screenshot(path=folder / picture)
        browser.close()
    return drawn


if __name__ == "__main__":
    drawn = {
        file: digest
        for device, cards in CARDS.items()
        for file, digest in pictures(page_of(newest_quickstart(device)), cards, DOCS).items()
    }
    (DOCS / DRAWN).write_text(json.dumps(drawn, indent=2) + "\n", encoding="utf-8")
    readme = DOCS.parent / "README.md"
    readme.write_text(with_answers(readme.read_text(encoding="utf-8")), encoding="utf-8")
    for name in drawn:
        sys.stdout.write(f"{DOCS / name}\n")
