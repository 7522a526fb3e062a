"""`attnbench compare` and `attnbench baseline` as a user meets them: what is printed, and with
which exit code.
"""

import json
import math
import os
import re
import shutil
from math import isnan
from pathlib import Path

import pytest

from attnbench.harness import baselines
from attnbench.harness.baselines import find_run
from attnbench.harness.cli.margins import read_margins
from attnbench.harness.errors import BadInput
from attnbench.harness.run.environments import COMPARED_FACTS
from attnbench.reports.comparison import text as compare_text
from attnbench.reports.comparison.compare import (
    FACTS,
    DifferentDevices,
    NotComparable,
    compare_backends,
    compare_runs,
)
from attnbench.reports.data.noise_floor import newest_noise_floor
from attnbench.reports.data.read import BadRun
from tests.reports.fake_pairs import PLANNED, fake_run, two_environments
from tests.reports.fake_runs import case, problem, row, write_run
from tests.reports.pages.test_hostile import HOSTILE

CPU = {"device": "cpu", "cpu": "Imaginary CPU 9000"}


@pytest.fixture
def run(tmp_path):
    return fake_run(tmp_path / "results", 1)


def changed(run, name, change):
    """A copy of a run, every row changed."""
    copy = run.parent / name
    shutil.copytree(run, copy)
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]
    (copy / "rows.jsonl").write_text("".join(json.dumps(change(one)) + "\n" for one in rows))
    return copy


def slower(one):
    return one | {
        "block_ms": [[[x * 1.2 for x in block] for block in process] for process in one["block_ms"]]
    }


def retold(run, **facts):
    """The environment of a run, changed."""
    meta = json.loads((run / "run.json").read_text())
    meta["environment"] |= facts
    meta["device"] = facts.get("device", meta["device"])
    (run / "run.json").write_text(json.dumps(meta))
    return run


def floor_file(folder, **changes):
    line = {
        "schema": 1,
        "device": "cpu",
        "started_utc": "2026-11-20T10:00:00+00:00",
        "environment": {"cpu": "Imaginary CPU 9000"},
    }
    line |= {"paired_noise_ratio": 0.02, "run_noise_ratio": 0.06, **changes}
    with (folder / "selfcheck.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def starts(folder, run_sd, count=4, first=1):
    """Self-checks whose runs alternate around 2 ms, with processes that differ by 2 %."""
    for start in range(first, first + count):
        level = 2 * math.exp(run_sd * (-1) ** start)
        processes = [[[level * math.exp(0.02 * k)]] for k in (-1, 0, 1, -1, 1)]
        floor_file(
            folder,
            started_utc=f"2026-11-21T{start:02}:00:00+00:00",
            samples={f"{case}-{twin}": processes for case in ("naive", "fused") for twin in (0, 1)},
        )


# ---- through the command line --------------------------------------------------------------------


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


# ---- what is compared with what ------------------------------------------------------------------


def test_facts_are_those_that_a_resumed_run_must_share():
    assert FACTS == COMPARED_FACTS


def test_cases_on_one_side_only_are_listed(run):
    more = [*PLANNED, case("sdpa", problem(1024))]
    found = compare_runs(run, fake_run(run.parent, 2, planned=more), None)
    assert [(one.verdict, one.reasons) for one in found.verdicts if one.metric == "status"] == [
        ("absent", ())
    ]
    assert "1 case absent from base" in " ".join(compare_text.sentences(found))


def test_a_broken_case_is_named_with_its_reason(run):
    first = PLANNED[0]["case"]
    broken = changed(
        run, "broken", lambda one: row(PLANNED[0], "oom") if one["case"] == first else one
    )
    said = " ".join(compare_text.sentences(compare_runs(run, broken, None)))
    assert f"Broken: {first}, measured before, out of memory now" in said


def test_runs_without_a_case_in_common_are_refused(run):
    with pytest.raises(NotComparable, match="no case in common"):
        compare_runs(run, fake_run(run.parent, 2, planned=[case("sdpa", problem(1024))]), None)


def test_an_empty_run_is_refused(run):
    with pytest.raises(NotComparable, match="no case has a row"):
        compare_runs(run, write_run(run.parent, PLANNED, [], name="empty"), None)


def test_a_torn_run_is_compared_and_says_so(run):
    torn = changed(run, "torn", lambda one: one)
    with (torn / "rows.jsonl").open("a") as file:
        file.write('{"schema": 1, "ki')
    assert "torn off" in " ".join(compare_text.sentences(compare_runs(run, torn, None)))


def test_gpus_of_one_kind_with_other_uuids_are_different_devices(run):
    facts = {"device": "cuda", "device_name": "GPU"}
    one, other = (
        retold(fake_run(run.parent, seed), device_uuid=f"GPU-{seed}", **facts) for seed in (2, 3)
    )
    with pytest.raises(DifferentDevices, match="device_uuid differs"):
        compare_runs(one, other, None)
    assert compare_runs(one, other, None, allow_different_devices=True)


def test_a_cpu_and_a_gpu_are_different_devices(run):
    with pytest.raises(DifferentDevices):
        compare_runs(run, retold(fake_run(run.parent, 2), device="cuda", device_name="GPU"), None)


def test_another_commit_is_told_and_is_no_other_environment(run):
    found = compare_runs(run, retold(fake_run(run.parent, 2, 1.5), git="abc"), None)
    assert [one.fact for one in found.matched.differences] == ["git"]
    assert not any("environment_differs" in one.reasons for one in found.verdicts)
    found = compare_runs(run, retold(fake_run(run.parent, 3, 1.5), torch="3.0"), None)
    assert all(
        "environment_differs" in one.reasons for one in found.verdicts if one.verdict == "slower"
    )


def test_a_baseline_that_shares_no_problem_is_refused(run):
    cases = [case("naive", problem(256)), case("fused", problem(512))]
    with pytest.raises(NotComparable, match="no other backend"):
        compare_backends(fake_run(run.parent, 2, planned=cases), "fused", None)


def test_backends_are_paired_by_session(run):
    together = changed(run, "together", lambda one: one | {"session": one["case"].split("-", 1)[1]})
    for path, paired in ((run, False), (together, True)):
        found = [
            one for one in compare_backends(path, "fused", None).verdicts if one.metric == "latency"
        ]
        assert [one.paired for one in found] == [paired] * 4
        assert all(("unpaired" in one.reasons) is not paired for one in found)


# ---- the noise floor -----------------------------------------------------------------------------


def test_the_newest_check_of_this_device_counts(run):
    folder = run.parent
    floor_file(folder, run_noise_ratio=0.5, started_utc="2026-11-19T10:00:00+00:00")
    floor_file(folder)
    floor_file(
        folder,
        environment={"cpu": "Another CPU"},
        run_noise_ratio=0.9,
        started_utc="2026-11-22T10:00:00+00:00",
    )
    with (folder / "selfcheck.jsonl").open("a") as file:
        file.write('[]\n{"schema": 1}\nnot json\n{"schema": 7}\n')
    floor_file(folder, run_noise_ratio="x", started_utc="2026-11-23T10:00:00+00:00")
    floor = newest_noise_floor([folder], CPU)
    assert floor is not None
    assert floor.run_noise_ratio == 0.06
    found = compare_runs(run, fake_run(folder, 2), None)
    assert {one.margin_ratio for one in found.verdicts if one.metric == "latency"} == {0.12}
    assert "latency 12 %" in " ".join(compare_text.sentences(found))


def test_without_a_check_the_margin_is_3_percent(run):
    assert newest_noise_floor([run.parent], CPU) is None
    found = compare_runs(run, fake_run(run.parent, 2), None)
    assert {one.margin_ratio for one in found.verdicts if one.metric == "latency"} == {0.03}


# ---- texts ---------------------------------------------------------------------------------------


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


def test_markdown_of_very_many_cases_stays_short_and_names_the_worst(run):
    cases = [case("sdpa", problem(n)) for n in range(16, 416)]
    base, new = fake_run(run.parent, 2, planned=cases), fake_run(run.parent, 3, 1.5, planned=cases)
    text = compare_text.markdown(compare_runs(base, new, None))
    assert len(text.encode()) < 1 << 20
    assert text.count("\n| sdpa") == compare_text.MOST_ROWS
    assert "300 more lines are left out" in text


def test_one_process_names_what_processes_differ_by_and_what_would_decide(run):
    starts(run.parent, 0.01)
    found = compare_runs(
        fake_run(run.parent, 2, processes=1), fake_run(run.parent, 3, 1.15, processes=1), None
    )
    assert {one.verdict for one in found.verdicts if one.metric == "latency"} == {"undecided"}
    said = " ".join(compare_text.sentences(found))
    assert "one process: the interval allows for the 7.6 % that processes differ on this" in said
    assert "a standard run (--plan standard) has several processes" in said


def test_two_runs_say_what_would_tell_how_much_runs_differ(run):
    found = compare_runs(run, fake_run(run.parent, 2, 3.0), None)
    assert {one.verdict for one in found.verdicts if one.metric == "latency"} == {"undecided"}
    assert isnan(found.mean.low)
    assert "selfcheck here in three or more separate starts" in " ".join(
        compare_text.sentences(found)
    )


def test_separate_starts_of_the_check_say_how_much_runs_differ(run):
    slow = fake_run(run.parent, 2, 1.9)
    starts(run.parent, 0.05, count=2)
    assert not any(one.worse for one in compare_runs(run, slow, None).verdicts)
    starts(run.parent, 0.05, count=3, first=3)
    found = compare_runs(run, slow, None)
    assert found.noise_floor.starts == 5
    assert all(one.worse for one in found.verdicts if one.metric == "latency")
    said = " ".join(compare_text.sentences(found))
    assert "that runs differ here, by 5 self-checks within 4.0 hours" in said
    starts(run.parent, 0.5, count=4, first=10)
    assert not any(one.worse for one in compare_runs(run, slow, None).verdicts)


def test_starts_under_other_conditions_do_not_count(run):
    starts(run.parent, 0.02)
    floor_file(
        run.parent,
        environment={"cpu": "Imaginary CPU 9000", "torch": "3.0"},
        started_utc="2026-11-22T10:00:00+00:00",
    )
    floor = newest_noise_floor([run.parent], CPU)
    assert (floor.starts, floor.between_runs) == (1, None)


# ---- margins -------------------------------------------------------------------------------------


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


# ---- baselines -----------------------------------------------------------------------------------


def test_a_run_elsewhere_is_kept_by_its_whole_path(run, tmp_path):
    root = tmp_path / "elsewhere"
    baselines.save("main", run, root, force=False)
    assert find_run("main", root) == run.resolve()


@pytest.mark.parametrize(
    "name", ["", "../up", ".hidden", "a/b", "a b", "\x1b", "x" * 65, "latest/"]
)
def test_a_bad_name_is_refused(run, name):
    with pytest.raises(BadInput, match="not a name for a baseline"):
        baselines.save(name, run, run.parent, force=False)


def test_a_baseline_may_not_hide_behind_a_run(run):
    with pytest.raises(BadInput, match="already the name of a run"):
        baselines.save(run.name, run, run.parent, force=False)


def test_a_baseline_whose_run_is_gone_says_so(run):
    baselines.save("main", run, run.parent, force=False)
    shutil.rmtree(run)
    with pytest.raises(BadInput, match="is gone"):
        find_run("main", run.parent)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"schema": 1}',
        '{"schema": 1, "run": 3, "saved_utc": ""}',
        '{"schema": 9, "run": "", "saved_utc": ""}',
    ],
)
def test_a_broken_baseline_file_is_bad_input(run, text):
    (run.parent / "baselines").mkdir()
    (run.parent / "baselines" / "main.json").write_text(text)
    with pytest.raises(BadInput):
        find_run("main", run.parent)
    with pytest.raises(BadInput):
        baselines.saved(run.parent)


def test_a_sample_that_no_clock_reads_is_refused(run):
    with pytest.raises(BadRun, match="wanted positive numbers, from 1e-09"):
        compare_runs(
            run, changed(run, "absurd", lambda one: one | {"block_ms": [[[1e-300]]]}), None
        )
