"""The page as a whole: its policy, several runs on it, the timeline, and reproducible bytes."""

import re
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest

from tests.conftest import environment
from tests.made_runs import grid, quickstart, row, write_run
from tests.reports.rendering import page_of, text_of


def test_the_policy_allows_only_our_own_script_and_style(tmp_path: Path) -> None:
    page = page_of(quickstart(tmp_path, lengths=(128,)))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    directives = dict(one.split(" ", 1) for one in unescape(policy[1]).split("; "))
    assert directives["default-src"] == "'none'"
    for tag, directive in (("script", "script-src"), ("style", "style-src-elem")):
        found = set(re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL))
        assert set(directives[directive].split()) == {
            f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in found
        }
    assert directives["base-uri"] == directives["form-action"] == "'none'"


def test_telemetry_that_is_no_plain_file_removes_the_timeline_only(tmp_path: Path) -> None:
    cases = grid(("fused",), (128,))
    windows = [{"process": 0, "way": "eager", "window_s": 2.0, "calls": 100}]
    run = write_run(
        tmp_path,
        cases,
        [
            row(one, utilization_tier="host", windows=windows, tables=None, missing={})
            for one in cases
        ],
    )
    (run / "telemetry.jsonl").symlink_to("/etc/hostname")
    assert "No timeline: " in text_of(page_of(run))


@pytest.mark.long
def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    run = quickstart(tmp_path)
    code = (
        "from tests.reports.rendering import page_of; import sys; from pathlib import Path;"
        f" sys.stdout.buffer.write(page_of(Path({str(run)!r})).encode())"
    )
    pages = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=environment({"PYTHONHASHSEED": seed}),
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert pages[0] == pages[1]
    assert len(pages[0]) > 100_000
