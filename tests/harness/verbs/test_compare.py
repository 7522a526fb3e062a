"""`attnbench compare` as a user meets it: what is printed, and with which exit code."""

import json
import re
from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.verbs.compare import read_margins
from attnbench.reports.comparison.compare import compare_runs
from tests.made_runs import (
    case,
    changed,
    fake_run,
    problem,
    read_rows,
    retold,
    row,
    starts,
    write_rows,
)
from tests.reports.pages.test_hostile import HOSTILE


@pytest.fixture
def run(tmp_path):
    return fake_run(tmp_path / "results", 1)


def test_other_devices_are_refused_unless_allowed(here, run):
    other = retold(fake_run(run.parent, 2), cpu="Another CPU")
    done = here("compare", run, other)
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert "Imaginary CPU 9000 (cpu) and Another CPU (cpu)" in done.stderr
    allowed = here("compare", run, other, "--allow-different-devices")
    assert allowed.returncode == 0
    assert "cpu Imaginary CPU 9000 before, Another CPU now" in allowed.stdout


def test_saving_says_what_a_baseline_can_show(here, run):
    unknown = here("compare", run.name, "--save", "main").stderr
    assert "of time above 30 %, until this machine's noise is known. Measure it once" in unknown
    starts(run.parent, 0.01, count=4)
    known = here("compare", run.name, "--save", "four").stderr
    assert re.search(r"of time above [\d.]+ %, the run-to-run noise of this machine", known)
    bytes_only = changed(run, "bytes", lambda one: one | {"block_ms": None, "session": None})
    assert "no case was timed" in here("compare", bytes_only, "--save", "five").stderr


def test_hostile_names_stay_inert_in_every_format(tmp_path, here):
    cases = [case(backend, problem(n)) for n in (128, 256) for backend in (HOSTILE, "sdpa")]
    runs = []
    for seed in (1, 2):
        path = fake_run(tmp_path / str(seed), seed, planned=cases)
        meta = json.loads((path / "run.json").read_text())
        meta["run"] = HOSTILE
        meta["environment"] |= {"driver": f"{seed}{HOSTILE}", "torch": {HOSTILE: seed}}
        (path / "run.json").write_text(json.dumps(meta))
        runs.append(path)
    rows = read_rows(runs[1])
    rows[0] = row(cases[0], "crashed", reason=HOSTILE)
    write_rows(runs[1], rows)
    for shape in ("", "md", "json", "html"):
        for arguments in (
            (*runs,),
            (runs[1], "--baseline", "sdpa"),
            (runs[0], "--baseline", HOSTILE[: HOSTILE.index("\ud800")]),
        ):
            done = here("compare", *arguments, *(("--format", shape, "-o", "-") if shape else ()))
            text = done.stdout + done.stderr
            assert done.returncode in (0, 2)
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", text)
            assert "Traceback" not in text
            if shape == "md" and done.returncode == 0:
                assert "<" not in re.sub("</?(details|summary)>", "", done.stdout)
                assert not re.search(r"(?<!\\)\[red", done.stdout)
                tables = [block for block in done.stdout.split("\n\n") if block.startswith("|")]
                assert tables
                for table in tables:
                    lines = table.splitlines()
                    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
            if shape == "html" and done.returncode == 0:
                assert "<img" not in done.stdout
                assert "&lt;img" in done.stdout
            if shape == "json" and done.returncode == 0:
                assert HOSTILE in {one["backend"] for one in json.loads(done.stdout)["cases"]}


def test_the_ending_of_a_file_says_how_it_is_written_and_a_page_needs_one(here, run):
    other = fake_run(run.parent, 2, 1.5)
    printed = here("compare", run, other).stdout
    for name, begins in (
        ("page.html", "<!DOCTYPE html>"),
        ("it.md", "# attnbench: "),
        ("it.json", "{"),
    ):
        done = here("compare", run, other, "-o", name)
        assert (done.returncode, done.stdout) == (0, f"{name}\n")
        assert Path(name).read_text().startswith(begins)
    page = Path("page.html").read_text()
    assert page == here("compare", run, other, "--format", "html", "-o", "-").stdout
    heading, _, _, answer, *_ = printed.splitlines()
    assert heading in page
    assert answer in page
    assert 'id="card-comparison"' in page
    refused = here("compare", run, other, "--format", "html")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "wanted a file for the page; add --output" in refused.stderr
    assert (
        "unknown format; there are: html, md, json"
        in here("compare", run, other, "-o", "page.pdf").stderr
    )


# ---- runs that were measured in turns, and margins by noise --------------------------------------


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Four runs of the same code, four more, and four of code that is slower by a quarter; one
    process each, as quick runs have.
    """
    sides = {"base": (1, 1.0), "head": (11, 1.0), "slow": (21, 1.25)}
    for name, (seed, ratio) in sides.items():
        for turn in range(4):
            fake_run(tmp_path / name, seed + turn, ratio, processes=1, blocks=6)
    return tmp_path / "base", tmp_path / "head", tmp_path / "slow"


def test_in_turns_equals_pass_and_a_slower_one_is_a_regression(here, folders) -> None:
    base, *sides = folders
    words = ("--turns", "--gate", "latency: 5%, peak_bytes: 0%")
    assert [here("compare", base, side, *words).returncode for side in sides] == [0, 3]


def test_a_margin_is_what_counts_as_the_same(here, folders) -> None:
    words = ("compare", *folders[:2], "--turns", "--format", "json", "--margin")
    found = json.loads(here(*words, "0.1%").stdout)
    assert found["margin_ratio"] == 0.001
    assert "same" not in {one["verdict"] for one in found["cases"] if one["metric"] == "latency"}
    refused = here(*words, "five")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "wanted a percentage from 0%" in refused.stderr


def test_runs_of_a_side_must_come_from_one_device(folders) -> None:
    base, head, _ = (sorted(folder.iterdir()) for folder in folders)
    retold(head[2], cpu="Another CPU")
    with pytest.raises(ValueError, match="different devices"):
        compare_runs(base, head)
    with pytest.raises(BadInput, match="wanted the same number"):
        compare_runs(base, head[:2])


# ---- gates as text and as files ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "margins"),
    [
        ("latency: 5%", {"latency": 0.05}),
        ("latency:5 %,peak_bytes:0%", {"latency": 0.05, "peak_bytes": 0.0}),
        ("energy_per_call_j: 2.5%", {"energy_per_call": 0.025}),
    ],
)
def test_a_gate_is_written_as_metrics_with_percentages(text, margins, tmp_path):
    assert read_margins(text) == pytest.approx(margins)
    file = tmp_path / "gate.yaml"
    file.write_text(text.replace(":", ": ").replace(",", "\n") + "\n")
    assert read_margins(str(file)) == pytest.approx(margins)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("latency: 5", "wanted a percentage"),
        ("latency: -5%", "wanted a percentage"),
        ("latency: nan%", "wanted a percentage"),
        ("latency: 5%, latency_ms: 6%", "given twice"),
        ("latency: 5%, ", "wanted metrics"),
        ("speed: 5%", "not a metric"),
        ("\x1b[31m: 5%", "not a metric"),
        ("", "empty"),
        ("no/such/file.yaml", "no such file"),
    ],
)
def test_another_gate_is_refused_in_one_line(text, said):
    with pytest.raises(BadInput, match=said) as refused:
        read_margins(text)
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("latency: 5%\nspeed: 5%\n", ":2:1: 'speed'|:2:1: speed"),
        ("latency: 5\n", ":1:10: latency: found 5; wanted a percentage"),
        ("latency: [5%]\n", ":1:10: latency: found a list of 1"),
        ("latency: 5%\nlatency: 6%\n", ":2:1"),
        ("- latency\n", "found a list of 1; wanted metrics"),
        ("", "empty"),
        ("latency: {", "not valid YAML"),
        ("1: 5%\n", ":1:1"),
    ],
)
def test_a_bad_gate_file_is_refused_with_the_place(text, said, tmp_path):
    file = tmp_path / "gate.yaml"
    file.write_text(text)
    with pytest.raises(BadInput, match=said):
        read_margins(str(file))
