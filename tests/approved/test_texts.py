"""Eight whole texts that were read and approved: sentences, tables and what surrounds them. Numbers
and marks of all runs are facts, in test_facts.py.

Each file holds a command, its output and its exit code. After a change on purpose, `make approve`
renews them; review the diff.
"""

import difflib
import re
import shlex
from pathlib import Path

import pytest

from tests.approved.printing import HERE, MEANT, RENEW, printed
from tests.reports.rendering import without_scripts

QUICKSTART = "cpu-20261121-quickstart"  # measured by version 0.2
PAGE = "quickstart_page.txt"
COMMANDS = {
    PAGE: f"show {QUICKSTART} -o page.html",
    "quickstart.txt": f"show {QUICKSTART}",
    "quickstart.md": f"show {QUICKSTART} --format md",
    "compare.txt": "compare before after",
    "advise.txt": "advise gpt2 --context 1k --memory-gib 4 --device cpu --out advise",
    "own.txt": "show own",
    "empty.txt": "show empty",
    "hostile.txt": "show hostile",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_printed_was_approved(
    name: str, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = COMMANDS[name]
    text, notes, code = printed(shlex.split(command), runs, monkeypatch)
    text = page_text((runs / "page.html").read_text()) if name == PAGE else text
    notes = f"\n[stderr]\n{notes}" if notes.strip() else ""
    found = f"$ attnbench {command}\n{text}{notes}\n[exit code {code}]\n"
    approved = HERE / name
    if RENEW:
        approved.write_text(found)
    wanted = approved.read_text() if approved.exists() else ""
    changes = difflib.unified_diff(
        wanted.splitlines(), found.splitlines(), f"{name}, approved", f"{name}, now", lineterm=""
    )
    assert found == wanted, "\n".join([*changes, MEANT])


def test_every_approved_text_has_its_command() -> None:
    assert {path.name for path in HERE.glob("*.*") if path.suffix in (".md", ".txt")} == set(
        COMMANDS
    )


def page_text(page: str) -> str:
    """The words of a page, a line per element that begins one."""
    body = without_scripts(page[page.find("<body") :])
    lines = re.sub(
        r"</?(p|h\d|li|tr|text|summary|figcaption|div|section|table)\b[^>]*>", "\n", body
    )
    cells = re.sub(r"</t[dh]>", " | ", lines)
    plain = re.sub(r"[^\S\n]+", " ", re.sub(r"<[^>]*>", "", cells).replace("\xa0", " "))
    return "\n".join(line.strip() for line in plain.splitlines() if line.strip()) + "\n"
