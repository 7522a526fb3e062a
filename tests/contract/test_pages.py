"""A run's page: one file that asks for nothing, holds what a hostile run says as text, and is read
without torch.
"""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.contract.conftest import run_attnbench
from tests.contract.reading import APPROVED, FAILURES, SPREAD, shown, write_run

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
LOADING = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("link", "href"),
    ("object", "data"),
    ("image", "href"),
    ("use", "href"),
}


class Seen(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a run in which cases ended in every way."""
    file = tmp_path_factory.mktemp("page") / "page.html"
    shown("show", FAILURES, "-o", file)
    return file.read_text()


def test_a_page_is_one_file_that_requests_nothing(page: str) -> None:
    tags = Seen(page).tags
    for tag, attributes in tags:
        for name, value in attributes.items():
            if (tag, name.removeprefix("xlink:")) in LOADING:
                assert (value or "").startswith(("data:", "#")), (tag, name, value)
    styles = re.sub(r"data:[^)]*", "", page)
    assert not re.search(r"@import|url\(\s*['\"]?\s*(https?:|//)", styles)
    (policy,) = [a["content"] or "" for _, a in tags if "http-equiv" in a and a.get("content")]
    assert "default-src 'none'" in policy
    assert not re.search(r"https?:|\*|unsafe-eval|connect-src", policy)
    scripts = re.search(r"script-src ([^;]*)", policy)
    assert scripts is None or "unsafe-inline" not in scripts[1]


def test_a_page_is_made_for_dark_screens_and_phones(page: str) -> None:
    assert "prefers-color-scheme: dark" in page
    assert re.search(r"@media[^{]*max-width", page)
    assert any(attributes.get("name") == "viewport" for _, attributes in Seen(page).tags)


def test_a_page_lists_every_case_that_did_not_run_with_its_reason(page: str) -> None:
    text = Seen(page).text
    rows = [json.loads(line) for line in (FAILURES / "rows.jsonl").read_text().splitlines()]
    failed = [row for row in rows if row["status"] != "ok"]
    assert len(failed) == 12
    for row in failed:
        first = row["reason"].splitlines()[0][:40]
        assert first in text, row["case"]


def test_equal_runs_have_equal_pages(page: str, tmp_path: Path) -> None:
    shown("show", FAILURES, "-o", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose names, reasons and facts are HTML and escape sequences."""
    folder = tmp_path_factory.mktemp("hostile")
    times_ms = [10.0, 10.1, 10.2]
    names = [("fused", times_ms), (f"attend{HOSTILE}@mine", times_ms)]
    timed = [(name, {}, times) for name, times in names]
    run = write_run(folder / "run", timed, kernel=f"{HOSTILE}\x1b[31m")
    plan = json.loads((run / "run.json").read_text())
    plan["scenario"]["question"] = f"{HOSTILE} and more?"
    plan["environment"]["cpu"] = HOSTILE
    (run / "run.json").write_text(json.dumps(plan))
    lines = (run / "rows.jsonl").read_text().splitlines()
    last = json.loads(lines[-1]) | {"status": "error", "reason": f"{HOSTILE}\x1b]0;x\x07"}
    last |= {"block_ms": None, "phase": "prepare", "peak_bytes": None}
    (run / "rows.jsonl").write_text(f"{lines[0]}\n{json.dumps(last)}\n")
    return run


def test_what_a_hostile_run_says_is_text(hostile: Path, tmp_path: Path) -> None:
    done = run_attnbench("show", hostile, "-o", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    seen = Seen(page)
    assert not any("onerror" in attributes for _, attributes in seen.tags)
    assert HOSTILE in seen.text
    assert "<script>alert" not in page
    printed = run_attnbench("show", hostile, "--all")
    assert printed.returncode == 0
    assert "\x1b" not in printed.stdout + printed.stderr
    assert "\x07" not in printed.stdout


def test_an_axis_that_varies_is_never_hidden(tmp_path: Path) -> None:
    variants: list[tuple[dict[str, object], str]] = [
        ({}, r"B = 1\b"),
        ({"batch": 8}, r"B = 8\b"),
        ({"seq_len": 512}, r"N = 512\b"),
        ({"heads": 8}, r"h = 8\b"),
        ({"kv_heads": 2}, r"h_kv = 2\b"),
        ({"d_v": 32}, r"d_v = 32\b"),
        ({"kv_seq_len": 768}, r"N_kv = 768\b"),
        ({"dtype": "bf16"}, r"bf16"),
        ({"causal": True, "causal_align": "top_left"}, r"(?<!not )causal"),
        ({"mask": "local", "window": 32}, r"local.*\b32\b"),
        ({"passes": "forward+backward"}, r"forward\+backward"),
        ({"scope": "layer"}, r"\blayer\b"),
    ]
    timed = [
        (backend, axes, [scale * 1.01**step for step in SPREAD])
        for axes, _ in variants
        for backend, scale in (("fused", 10), ("sdpa", 5))
    ]
    run = write_run(tmp_path / "run", timed)
    text = shown("show", run, "--all")
    for section in set(re.findall(r"--sections (\w+)", text)):  # of long tables
        text += shown("show", run, "--sections", section)
    lines = [line for line in text.splitlines() if "fused" in line or "sdpa" in line]
    for axes, pattern in variants:
        assert any(re.search(pattern, line) for line in lines), axes


def test_what_was_not_measured_is_not_shown_as_zero(tmp_path: Path) -> None:
    missing = {"peak_bytes": None, "output_bytes": None, "input_bytes": None}
    timed = [(backend, {}, [10.0, 10.1, 10.2, 10.3]) for backend in ("fused", "sdpa")]
    run = write_run(tmp_path / "run", timed, **missing)
    zero = r"(?<![\d.,])0(\.0+)? ?(B|bytes|KiB|MiB|GiB|%|J|W|MHz)(?![\w])"
    text = shown("show", run, "--all")
    assert not re.search(zero, text), text
    entries = json.loads(shown("show", run, "--format", "github-benchmark"))
    assert {entry["unit"] for entry in entries} == {"ms"}


@pytest.mark.parametrize(
    "words",
    [
        ("show", FAILURES),
        ("show", FAILURES, "-o", "page.html"),
        ("show", FAILURES, "--format", "csv"),
        ("compare", APPROVED / "before", APPROVED / "after"),
    ],
    ids=["terminal", "page", "csv", "compare"],
)
def test_results_are_read_without_torch(words: tuple[object, ...], tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')")
    env = {"PYTHONPATH": f"{tmp_path}:{ROOT / '.package'}"}
    done = run_attnbench(*words, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout
