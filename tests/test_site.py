"""The site that `make site` builds: every run has its page, links lead somewhere, nothing is asked
of another host, and axe finds nothing.
"""

import functools
import html
import json
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import typer

from attnbench.harness.verbs.app import app
from tests.conftest import ROOT, environment, ran

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("zensical") is None, reason="needs zensical: make"),
]
MADE = ROOT / "tests" / "approved" / "runs"
ADVICE = ["attnbench", "advise", "gpt2", "--context", "1k", "--memory-gib", "4", "--measure"]
MADE_UP = {
    "memory_wall": "walls",
    "head_cost": "head_cost",
    "advise": "advise",
    "what_heads_learn": "learning",
    "growth": "growth",
}
NAMES = ["quickstart", *(name.replace("advise", "advise-gpt2") for name in MADE_UP)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make site` does, from the kept runs and some made-up ones."""
    folder = tmp_path_factory.mktemp("site")
    runs, pages = folder / "runs", folder / "pages"
    (kept,) = (ROOT / "results" / "reference").glob("cpu-*-quickstart")
    shutil.copytree(kept, runs / kept.name)
    for name, run in MADE_UP.items():
        shutil.copytree(next((MADE / run).rglob("run.json")).parent, runs / name)
        meta = json.loads((runs / name / "run.json").read_text())
        meta["scenario"]["name"] = name
        meta["command"] = ADVICE if name == "advise" else meta["command"]
        (runs / name / "run.json").write_text(json.dumps(meta))
    command = [sys.executable, ROOT / ".ci" / "site.py", "--runs", runs, "--to", pages]
    ran(command, cwd=ROOT, env=environment(), check=True)
    return pages


def test_every_run_has_its_page_and_its_answer_in_the_gallery(site: Path) -> None:
    gallery = (site / "gallery.html").read_text()
    titles = [re.sub("<.*?>", "", one) for one in re.findall(r"<h2 .*?>(.*?)<a", gallery)]
    assert [one.replace(" ", "-").lower() for one in titles] == NAMES
    for name in NAMES:
        assert f'href="gallery/{name}.html"' in gallery
        assert (site / "gallery" / f"{name}.html").read_text().startswith("<!DOCTYPE html>")
    advice = (site / "gallery" / "advise-gpt2.html").read_text()
    assert "Imaginary CPU 9000" in advice
    assert re.search(
        r"Use attn_implementation=.* for prefill of 1.024 tokens", html.unescape(gallery)
    )


def test_links_lead_to_pages_and_places(site: Path) -> None:
    texts = {path: path.read_text() for path in site.rglob("*.html")}
    del texts[site / "404.html"]  # a server shows it at any address, so its links are a server's
    places = {path: set(re.findall(r'\bid="?([^"\s>]+)', text)) for path, text in texts.items()}
    dead, alive = [], 0
    for path, text in texts.items():
        for link in re.findall(
            r'(?:href|src)="?([^"\s>]+)', re.sub(r"(?s)<script.*?</script>", "", text)
        ):
            file, _, place = unquote(html.unescape(link)).partition("#")
            if re.match(r"\w+:", file) or (file in ("", ".") and place in ("", "__skip")):
                continue
            there = (path.parent / file).resolve() if file else path
            there = there / "index.html" if there.is_dir() else there
            wrong_place = there in places and place and place not in places[there]
            alive += 1
            if not there.exists() or wrong_place:
                dead.append(f"{path.relative_to(site)}: {link}")
    assert dead == []
    assert alive > 1000


def test_the_reference_of_the_command_line_has_every_option(site: Path) -> None:
    text = html.unescape((site / "cli.html").read_text())
    run = typer.main.get_command(app).get_command(None, "run")
    names = [name for one in run.params if not one.hidden for name in one.opts if name[0] == "-"]
    assert len(names) > 10
    assert [name for name in names if f"<code>{name}" not in text and f", {name}" not in text] == []


# ---- in a browser --------------------------------------------------------------------------------


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


PAGES = sorted(
    path.relative_to(ROOT / "docs").with_suffix("").as_posix()
    for path in (ROOT / "docs").rglob("*.md")
)
OTHERS = ["cli", "files/index", "files/scenarios/index"]


@pytest.mark.nightly
def test_no_page_asks_another_host_for_anything(chromium: Any, address: str, site: Path) -> None:
    with chromium.new_page() as page:
        asked: list[str] = []

        def only_ours(route: Any) -> None:
            url = route.request.url
            asked.append(url)
            ours = url.startswith((address, site.as_uri(), "data:", "blob:"))
            route.continue_() if ours else route.abort()

        page.context.route("**/*", only_ours)
        for start in (address, f"{site.as_uri()}/"):
            for name in [*PAGES, *OTHERS, *(f"gallery/{name}" for name in NAMES)]:
                page.goto(f"{start}{name}.html")
            page.goto(f"{start}reading.html")
            page.locator(".md-search__button").click()
            page.get_by_role("combobox").fill("calibration")
            page.get_by_role("option").first.wait_for()
        assert len(asked) > 100
        ours = (address, site.as_uri(), "data:", "blob:")
        assert [url for url in asked if not url.startswith(ours)] == []


@pytest.mark.nightly
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 375)])
def test_axe_finds_no_violation(chromium: Any, address: str, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe: make")
    with chromium.new_page(color_scheme=scheme, viewport={"width": width, "height": 900}) as page:
        found = {}
        for name in [*PAGES, *OTHERS]:
            page.goto(f"{address}{name}.html")
            result = axe.Axe().run(page)
            if result.violations_count:
                found[name] = result.generate_report()
            widths = "[document.documentElement, document.body].map(one => one.scrollWidth)"
            assert max(page.evaluate(widths)) <= width, name
        assert found == {}
