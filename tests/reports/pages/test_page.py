"""The page as a whole: its policy, several runs on it, the timeline, and reproducible bytes."""

import json
import re
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest

from tests.conftest import environment
from tests.reports.fake_runs import grid, head_sweep, quickstart, row, write_run
from tests.reports.rendering import page_of, section_of, text_of, write_page


def write_telemetry(run: Path, cases: list[str]) -> None:
    header = {"kind": "host", "uuid": None, "period_s": 0.2, "board_wide": [], "missing": {}}
    samples = [
        {
            "t_ns": 10**9 + place * 200_000_000,
            "utc": "2026-11-21T09:30:00Z",
            "what": cases[place // 50],
            "cpu_ratio": 0.5 + place % 50 / 100,
        }
        for place in range(50 * len(cases))
    ]
    (run / "telemetry.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in [header, *samples]) + "torn"
    )


@pytest.mark.long
def test_the_page_of_several_runs_is_beside_them_and_names_them_by_their_scenarios(
    tmp_path: Path,
) -> None:
    runs = [quickstart(tmp_path, lengths=(128, 256)), head_sweep(tmp_path)]
    out = write_page(*runs)
    assert out == tmp_path / "report.html"
    page = out.read_text()
    assert "<title>attnbench: quickstart, head_cost</title>" in page
    environment = text_of(section_of(page, "environment"))
    for run, scenario in zip(runs, ("quickstart", "head_cost"), strict=True):
        assert text_of(page).count(scenario) > 20
        assert text_of(page).count(run.name) == environment.count(run.name) > 0


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


def test_the_timeline_is_drawn_per_backend(tmp_path: Path) -> None:
    cases = grid(("fused", "sdpa"), (128, 256))
    windows = [{"process": 0, "way": "eager", "window_s": 2.0, "calls": 100, "host_cpu_ratio": 0.9}]
    run = write_run(
        tmp_path,
        cases,
        [
            row(one, utilization_tier="host", windows=windows, tables=None, missing={})
            for one in cases
        ],
    )
    write_telemetry(run, [one["case"] for one in cases])
    page = page_of(run)
    section = section_of(page, "utilization")
    assert "all cores busy: 50 % to 99 %" in text_of(section)
    assert 'data-look="0"' in section
    assert "1 line of telemetry.jsonl could not be read" in section


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


@pytest.mark.long
def test_the_page_of_many_runs_begins_with_answers(tmp_path: Path) -> None:
    runs = []
    for number in range(5):
        run = quickstart(tmp_path / str(number))
        meta = json.loads((run / "run.json").read_text())
        meta["scenario"] |= {"name": f"number {number}", "question": f"What about {number}?"}
        (run / "run.json").write_text(json.dumps(meta))
        runs.append(run)
    few, many = page_of(*runs[:4]), page_of(*runs)
    assert few.count('<h2 class="asked">') == 4
    assert '<p class="question">' not in few
    assert '<details class="runs">' not in few
    assert "<title>attnbench: 5 scenarios</title>" in many
    assert '<p class="question">' not in many
    folded = many[many.index('<details class="runs">') : many.index("</details>")]
    assert all(f"What about {number}?" in folded for number in range(5))
