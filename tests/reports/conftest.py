"""The page in Debian's Chromium, opened from disk, as a reader opens it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.made_runs import quickstart
from tests.reports.rendering import page_of, write_page

# Every status that a quickstart has, and few enough cases for axe to be quick.
LENGTHS = (512, 1024, 2048, 8192)


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    return write_page(quickstart(folder, lengths=LENGTHS), out=folder / "page.html")


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of all lengths, with several figures."""
    return page_of(quickstart(tmp_path_factory.mktemp("page")))


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page; fails at the end after any other request or any message on the console."""
    problems: list[str] = []
    contexts = []

    def go(file: Path, width: int = 1280, state: str = "", **options: Any) -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, offline=True, **options
        )
        contexts.append(context)
        page = context.new_page()
        address = file.as_uri()
        page.on(
            "request",
            lambda sent: (
                None
                if sent.url.split("#")[0] in (address, f"blob:{address}")
                else problems.append(sent.url)
            ),
        )
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(address + state)
        if options.get("java_script_enabled", True):
            page.locator("main > section > noscript").first.wait_for(state="detached")
        return page

    yield go
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def opened(visit: Callable[..., Any], page_file: Path) -> Callable[..., Any]:
    return lambda *args, **options: visit(page_file, *args, **options)
