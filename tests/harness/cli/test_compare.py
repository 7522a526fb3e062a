"""`attnbench compare` and `attnbench baseline` as a user meets them: what is printed, and with
which exit code.
"""

import json
import os
import re
from pathlib import Path

import pytest

from tests.made_runs import (
    case,
    changed,
    fake_run,
    problem,
    retold,
    row,
    slower,
    starts,
    two_environments,
)
from tests.reports.pages.test_hostile import HOSTILE


@pytest.fixture
def run(tmp_path):
    return fake_run(tmp_path / "results", 1)


def test_a_run_is_the_same_as_itself(attnbench, run):
    done = attnbench("compare", run, run)
    assert done.returncode == 0, done.stderr
    assert "slower in 0, faster in 0, same in 6 and undecided in 0 of 6 cases" in done.stdout
    assert done.stdout.count(" same") >= 6


def test_a_slower_copy_is_a_regression_under_a_gate_and_told_without_one(attnbench, run):
    copy = changed(run, "copy", slower)
    done = attnbench("compare", run, copy, "--gate", "latency: 5%")
    assert done.returncode == 3
    assert "slower in 6" in done.stdout
    assert "Gate latency 5 %: failed, 6 regressions" in done.stdout
    assert attnbench("compare", run, copy).returncode == 0
    assert attnbench("compare", run, copy, "--gate", "latency: 25%").returncode == 0
    assert attnbench("compare", copy, run, "--gate", "latency: 5%").returncode == 0


def test_a_second_run_of_the_same_code_passes_once_it_is_known_how_much_runs_differ(attnbench, run):
    words = ("compare", run.name, fake_run(run.parent, 2).name, "--out", run.parent, "--gate")
    unknown = attnbench(*words, "latency: 50%, peak_bytes: 0%")
    assert unknown.returncode == 6, unknown.stdout + unknown.stderr
    assert "nothing decided (0 of 6: two runs at different times)" in unknown.stdout
    starts(run.parent, 0.01)
    known = attnbench(*words, "latency: 50%, peak_bytes: 0%")
    assert known.returncode == 0, known.stdout + known.stderr
    assert "slower in 0, faster in 0" in known.stdout


def test_json_is_one_object_that_says_it_all(attnbench, run):
    done = attnbench(
        "compare", run, changed(run, "copy", slower), "--gate", "latency: 5%", "--format", "json"
    )
    found = json.loads(done.stdout)
    assert done.returncode == 3
    assert len([one for one in found["cases"] if one["metric"] == "latency"]) == 6
    assert found["geometric_mean"]["all"]["ratio"] == pytest.approx(1.2)
    assert found["gate"]["passed"] is False
    assert found["environment_differences"] == []
    assert {one["verdict"] for one in found["cases"]} == {"slower", "same"}


def test_backends_of_one_run_against_a_baseline(attnbench, run):
    done = attnbench("compare", run, "--baseline", "fused")
    assert done.returncode == 0, done.stderr
    assert "every backend against fused" in done.stdout
    assert "of 4 cases" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("RUN",), "name a second run"),
        (("RUN", "RUN", "--baseline", "fused"), "both NEW and --baseline"),
        (("RUN", "--baseline", "fuse"), "no backend 'fuse'"),
        (("RUN", "RUN", "--fail-on-undecided"), "belongs to --gate"),
        (("RUN", "RUN", "--gate", "latncy: 5%"), "did you mean latency?"),
        (("RUN", "RUN", "--gate", "energy_per_call: 5%"), "energy_per_call: no case has it"),
        (("RUN", "nowhere"), "no such run"),
        (("RUN", "baseline:none"), "no such baseline"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(attnbench, run, arguments, said):
    done = attnbench("compare", *(run if one == "RUN" else one for one in arguments))
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_run_against_itself_is_said_to_be_that(attnbench, run):
    said = f"are the same run, {run.name}; measure again before you compare"
    assert said in attnbench("compare", run, run).stderr
    assert said not in attnbench("compare", run, fake_run(run.parent, 2)).stderr


def test_other_devices_are_refused_unless_allowed(attnbench, run):
    other = retold(fake_run(run.parent, 2), cpu="Another CPU")
    done = attnbench("compare", run, other)
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert "Imaginary CPU 9000 (cpu) and Another CPU (cpu)" in done.stderr
    allowed = attnbench("compare", run, other, "--allow-different-devices")
    assert allowed.returncode == 0
    assert "cpu Imaginary CPU 9000 before, Another CPU now" in allowed.stdout


def test_broken_runs_are_one_line_and_exit_code_2(attnbench, run):
    newer = changed(run, "newer", lambda one: one | {"schema": 99})
    broken = changed(run, "broken", lambda one: one | {"block_ms": [[[1.0, "x"]]]})
    nan = changed(run, "nan", lambda one: one | {"block_ms": [[[float("nan")]]]})
    absurd = changed(run, "absurd", lambda one: one | {"block_ms": [[[1e300]]]})
    huge = changed(run, "huge", lambda one: one | {"block_ms": [[[10**400, 10**401]]]})
    for bad, said in (
        (newer, "newer than format"),
        (broken, "block_ms"),
        (nan, "NaN"),
        (absurd, "from 1e-09 to 1e+12"),
        (huge, ""),
    ):
        done = attnbench("compare", run, bad)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert said in done.stderr


@pytest.fixture
def upgrade(tmp_path):
    return two_environments(tmp_path / "results", {"naive": 1.25})


def test_an_upgrade_is_gated_by_the_environments_of_one_run(attnbench, upgrade):
    done = attnbench(
        "compare",
        f"{upgrade}@old",
        f"{upgrade.name}@new",
        "--out",
        upgrade.parent,
        "--gate",
        "latency: 5%",
    )
    assert done.returncode == 3, done.stderr
    assert "Gate latency 5 %: failed, 2 regressions" in done.stdout
    assert (
        "The environments differ (what is compared): torch 2.11.0 before, 2.13.0 now."
        in done.stdout
    )
    assert (
        attnbench("compare", f"{upgrade}@new", f"{upgrade}@old", "--gate", "latency: 5%").returncode
        == 0
    )


def test_json_says_which_environment_is_which(attnbench, upgrade):
    found = json.loads(
        attnbench("compare", f"{upgrade}@old", f"{upgrade}@new", "--format", "json").stdout
    )
    assert (found["base"]["environment"], found["new"]["environment"]) == ("old", "new")
    assert found["environment_differences"] == [
        {"fact": "torch", "base": "2.11.0", "new": "2.13.0"}
    ]
    assert len(found["cases"]) == 2 * 6
    assert all(one["paired"] and one["python"] == "new" for one in found["cases"])
    assert all(
        one["base_case"] == one["case"].removesuffix("new") + "old" for one in found["cases"]
    )
    whole = json.loads(attnbench("compare", upgrade, upgrade, "--format", "json").stdout)
    assert (whole["base"]["environment"], len(whole["cases"])) == (None, 2 * 12)


@pytest.mark.parametrize(
    ("base", "more", "said"),
    [
        ("RUN@never", ("RUN@new",), "no environment 'never' in this run; there are: old, new"),
        ("RUN@", ("RUN@new",), "wanted RUN@NAME, such as latest@new"),
        ("@old", ("RUN@new",), "wanted RUN@NAME"),
        ("nowhere@old", ("RUN@new",), "nowhere: no such run"),
        (
            "RUN@old",
            ("--baseline", "fused"),
            "backends are compared within every environment; leave out @old",
        ),
    ],
)
def test_environments_that_are_none_are_one_line_and_exit_code_2(
    attnbench, upgrade, base, more, said
):
    done = attnbench("compare", *(one.replace("RUN", str(upgrade)) for one in (base, *more)))
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, "")
    assert said in done.stderr


def test_a_baseline_is_saved_listed_and_compared_with(attnbench, run):
    saved = attnbench("baseline", "save", "main", run.name)
    assert saved.returncode == 0, saved.stderr
    assert saved.stdout.strip() == "results/baselines/main.json"
    assert json.loads(Path(saved.stdout.strip()).read_text())["run"] == run.name
    listed = attnbench("baseline", "list")
    assert "main" in listed.stdout
    assert run.name in listed.stdout
    for name in ("main", "baseline:main"):
        assert attnbench("compare", name, run.name, "--gate", "latency: 5%").returncode == 0
    again = attnbench("baseline", "save", "main", run.name)
    assert again.returncode == 2
    assert "already a baseline; replace it with --force" in again.stderr
    assert attnbench("baseline", "save", "main", run.name, "--force").returncode == 0


def test_a_table_fits_80_columns_of_a_terminal(attnbench, run, monkeypatch):
    import pty
    import subprocess

    from tests.conftest import command_line, environment

    other = fake_run(run.parent, 2, 1.3, contended_blocks=20)
    parent, child = pty.openpty()
    command = command_line("compare", run, other)
    process = subprocess.Popen(
        command,
        env=environment({"COLUMNS": "80", "TERM": "dumb"}),
        stdout=child,
        stderr=subprocess.STDOUT,
    )
    os.close(child)
    text = b""
    while True:
        try:
            chunk = os.read(parent, 1 << 16)
        except OSError:
            break
        if not chunk:
            break
        text += chunk
    os.close(parent)
    assert process.wait() == 0
    lines = text.decode().splitlines()
    assert max(map(len, lines)) <= 80
    assert any("undecided" in line for line in lines)


def test_hostile_names_stay_inert_in_every_format(tmp_path, attnbench):
    cases = [case(backend, problem(n)) for n in (128, 256) for backend in (HOSTILE, "sdpa")]
    runs = []
    for seed in (1, 2):
        path = fake_run(tmp_path / str(seed), seed, planned=cases)
        meta = json.loads((path / "run.json").read_text())
        meta["run"] = HOSTILE
        meta["environment"] |= {"driver": f"{seed}{HOSTILE}", "torch": {HOSTILE: seed}}
        (path / "run.json").write_text(json.dumps(meta))
        runs.append(path)
    rows = [json.loads(line) for line in (runs[1] / "rows.jsonl").read_text().splitlines()]
    rows[0] = row(cases[0], "crashed", reason=HOSTILE)
    (runs[1] / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    for shape in ("table", "md", "json"):
        for arguments in (
            (*runs,),
            (runs[1], "--baseline", "sdpa"),
            (runs[0], "--baseline", HOSTILE[: HOSTILE.index("\ud800")]),
        ):
            done = attnbench("compare", *arguments, "--format", shape)
            text = done.stdout + done.stderr
            assert done.returncode in (0, 2)
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", text)
            assert "Traceback" not in text
            if shape == "md" and done.returncode == 0:
                assert "<" not in done.stdout
                assert not re.search(r"(?<!\\)\[red", done.stdout)
                assert (
                    len(
                        {
                            len(re.findall(r"(?<!\\)\|", line))
                            for line in done.stdout.splitlines()
                            if line.startswith("|")
                        }
                    )
                    == 1
                )
            if shape == "json" and done.returncode == 0:
                assert HOSTILE in {one["backend"] for one in json.loads(done.stdout)["cases"]}


def test_brackets_in_names_are_text(attnbench, tmp_path):
    cases = [case(backend, problem(128)) for backend in ("[/nope]", "[red]x[/red]")]
    base, new = (fake_run(tmp_path / str(seed), seed, planned=cases) for seed in (1, 2))
    done = attnbench("compare", base, new)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("[/nope]") == 2
    assert done.stdout.count("[red]x[/red]") == 2
