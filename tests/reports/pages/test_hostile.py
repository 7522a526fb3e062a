"""Hostile names stay inert on the page and in every export."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from attnbench.harness.files.printable import visible
from attnbench.reports.exports import export
from tests.made_runs import case, problem, row, write_run
from tests.reports.rendering import openers, page_of

HOSTILE = (
    "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    "[red]x[/red]|$\\frac{$\x1b[31m\u202e`a`\ud800\r\n=cmd()"
)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.scripts: list[list[tuple[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "script":
            self.scripts.append(attrs)
        self.attributes.update(name for name, _ in attrs)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    cases = [
        case(backend, problem(n, h))
        for n in (128, 256, 512)
        for h in (1, 8)
        for backend in (HOSTILE, "_hidden", "sdpa")
    ]
    rows = [row(planned) for planned in cases[:-3]]
    rows[-3] = row(cases[-6], "oom", reason=HOSTILE)  # so there is a wall
    rows += [
        row(cases[-3], "crashed", reason=HOSTILE, log_tail=HOSTILE, kernel=HOSTILE),
        row(cases[-2], "error", reason="=cmd()|' /C calc'!A0"),
    ]
    changes = {
        "name": HOSTILE,
        "question": HOSTILE,
        "backends": [HOSTILE],
        "notes": {HOSTILE: HOSTILE},
    }
    return write_run(
        tmp_path,
        cases,
        rows,
        scenario=changes,
        environment={"cpu": HOSTILE, HOSTILE: [HOSTILE]},
        command=[HOSTILE],
    )


def test_names_add_no_tag_or_handler_to_the_page(run: Path) -> None:
    page = page_of(run)
    found = Tags()
    found.feed(page)
    assert not found.tags & {"img", "iframe", "object", "embed", "link", "base", "form"}
    # what opens each noscript, its data and its script, all ours
    assert found.scripts == openers(page) * [[]] + [
        [("type", "application/json"), ("id", "data")],
        [],
    ]
    assert not [name for name in found.attributes if name.startswith("on")]
    assert "&lt;img src=x" in page
    for card in ("wall", "heads"):  # and in their drawings
        assert "&lt;img src=x" in page.partition(f'id="card-{card}"')[2].partition("</svg>")[0]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", page)
    page.encode()


def test_the_data_in_the_page_is_json_without_a_tag_or_a_control(run: Path) -> None:
    data = page_of(run).split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert not re.search("[<>&\x00-\x1f\x7f-\uffff]", data)
    assert json.loads(data)["columns"]["backend"]["of"][0] == visible(HOSTILE)


def text_of(run: Path, name: str) -> str:
    return export(run, name).content


@pytest.mark.parametrize("name", ["pytest-benchmark", "github-benchmark"])
def test_names_that_other_programs_print_hold_no_control_byte(run: Path, name: str) -> None:
    text = text_of(run, name)
    text.encode("ascii")
    strings = re.findall(r'"(?:[^"\\]|\\.)*"', text)
    names = [one for one in map(json.loads, strings) if "img src" in one]
    assert names
    assert not [one for one in names if re.search("[\x00-\x09\x0b-\x1f\u202e\ud800]", one)]
