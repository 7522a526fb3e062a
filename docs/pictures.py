"""Draw the README's pictures anew from stored runs, and its answer: `make pictures`.

They are photographs of the page's own cards, without controls and most words, so they cannot show
what a page no longer has. Beside them, pictures.json has a digest of the cards that they show: it
tells when they are not current, on every machine, whatever its fonts. Needs Debian's chromium, and
attnbench with its test tools.
"""

import hashlib
import json
import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright
from typer.testing import CliRunner

from attnbench.harness.verbs.app import app
from attnbench.reports.pages import html
from attnbench.reports.pages.report import open_report

DOCS = Path(__file__).parent
DRAWN = "pictures.json"
CARDS = {  # of the newest quickstart that is kept of each device
    "h200": {"wall": "wall.png"},
    "cpu": {"heads": "heads.png"},
}
WIDTHS = {"wall": 1264, "heads": 620}  # of the window in which a card has no empty half
PIXELS_PER_POINT = 1.5
BARE = """const each = (selector, act) => document.querySelectorAll(selector).forEach(act);
each("#card-wall .note, #card-heads .told, .budget > :is(input, label)", (one) => one.remove());"""
ANSWER = "cpu"  # whose answer the README has
MOST = 96  # characters of a line of it


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


def with_answer(readme: str) -> str:
    """The README with what the end of a run and `attnbench show` print: the device, the answer, and
    what each backend costs. How sure that is, the heads and how far to trust it stand beside it.
    """
    run = newest_quickstart(ANSWER)
    done = CliRunner().invoke(app, ["show", str(run)], env={"COLUMNS": "100"})
    printed = done.stdout.splitlines()
    regret = [line for line in printed if "  " in line]  # the rest are sentences
    lines = [printed[1], *textwrap.wrap(open_report([run]).answer, MOST), *regret]
    block = re.compile(r"(?<=<!-- answer -->\n)```text\n.*?```", re.DOTALL)
    return block.sub(lambda _: "\n".join(["```text", *lines, "```"]), readme)


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
        shown = browser.new_page(device_scale_factor=PIXELS_PER_POINT)
        shown.goto(file.as_uri())
        shown.evaluate(BARE)
        for name, picture in cards.items():
            shown.set_viewport_size({"width": WIDTHS[name], "height": 900})
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
    readme.write_text(with_answer(readme.read_text(encoding="utf-8")), encoding="utf-8")
    for name in drawn:
        sys.stdout.write(f"{DOCS / name}\n")
