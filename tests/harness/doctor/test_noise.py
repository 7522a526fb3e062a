"""A/A: equals measured side by side, and what is said of them."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from attnbench.harness.doctor.noise import append, noise_floor, selfcheck, twins
from attnbench.harness.doctor.text import noise_sentences
from attnbench.harness.files.errors import EnvironmentUnmet
from attnbench.harness.rows.record import Record, Status
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.start import RunOptions


def records(shift):
    """Twins whose log-latency differs by shift(backend, process)."""
    made = []
    for case in twins("cpu"):
        levels = [
            0.01 * process + (shift(case.backend, process) if case.twin else 0.0)
            for process in range(5)
        ]
        blocks = [[[math.exp(x + wobble)] for wobble in (-0.001, 0.0, 0.001)] for x in levels]
        made.append(record(case, Status.OK, block_ms=blocks, contended_blocks=1))
    return made


def record(case, status, reason="", **values):
    return Record.of(case, status, reason, {"device": "cpu", "attempt": 1, **values})


def test_noise_that_favours_no_twin_is_a_floor_and_no_alarm():
    floor = noise_floor("cpu", "now", records(lambda backend, process: 0.02 * (-1) ** process))
    assert floor.false_alarms == 0
    assert not floor.is_off
    # Every log-ratio is 0.02 either way; 95 % of normal ones of that size lie within 1.96 times as
    # much.
    assert floor.paired_noise_ratio == pytest.approx(math.exp(1.96 * 0.02) - 1, rel=1e-3)
    assert floor.run_noise_ratio > 0.03
    assert (floor.blocks, floor.contended_blocks) == (90, 6)
    assert any("contended" in sentence for sentence in noise_sentences(floor, Path("x")))


@pytest.mark.parametrize("kept", [[3, 3, 3, 3], [3, 3, 3, 3, 1], [3, 2, 3, 0, 3]])
def test_a_twin_with_fewer_blocks_is_compared_by_those_that_both_have(kept):
    made = records(lambda backend, process: 0.02 * (-1) ** process)
    blocks = [process[:count] for process, count in zip(made[1]["block_ms"], kept, strict=False)]
    made[1] = record(twins("cpu")[1], Status.OK, block_ms=blocks, contended_blocks=1)
    floor = noise_floor("cpu", "now", made)
    assert floor.blocks == 90 - 15 + sum(kept)
    assert floor.paired_noise_ratio == pytest.approx(math.exp(1.96 * 0.02) - 1, rel=0.1)


def test_starts_of_the_check_are_counted_until_they_tell_how_much_runs_differ(tmp_path):
    said = []
    for start in range(3):
        made = records(lambda backend, process, start=start: 0.01 * start * (-1) ** process)
        floor = replace(
            noise_floor("cpu", f"2026-11-2{start}T10:00:00+00:00", made),
            environment={"cpu": "Imaginary CPU 9000"},
        )
        append(tmp_path, floor, made)
        said.append(" ".join(noise_sentences(floor, tmp_path)))
    assert "Run-to-run noise needs 3 starts; this was start 1." in said[0]
    assert "this was start 2." in said[1]
    assert "Over 3 starts of this check, runs differ by up to" in said[2]


@pytest.mark.parametrize(("apart", "is_off"), [(["sdpa"], False), (["naive", "fused"], True)])
def test_one_pair_told_apart_may_be_chance_and_two_are_an_alarm(apart, is_off):
    made = records(lambda backend, process: 0.05 * (backend in apart) + 0.002 * (-1) ** process)
    floor = noise_floor("cpu", "now", made)
    assert (floor.false_alarms, floor.is_off) == (len(apart), is_off)


def test_a_case_that_did_not_end_well_gives_no_floor():
    failed = records(lambda backend, process: 0.0)
    failed[1] = record(twins("cpu")[1], Status.CRASHED, "SIGSEGV")
    with pytest.raises(EnvironmentUnmet, match="crashed: SIGSEGV"):
        noise_floor("cpu", "now", failed)


@pytest.mark.nightly
@pytest.mark.long
def test_a_self_check_measures_and_keeps_what_it_measured(tmp_path):
    options = RunOptions(command=["selfcheck"], listener=Listener(), embedded=True)
    floor = selfcheck("cpu", tmp_path, 0, options).as_dict()
    (line,) = [json.loads(line) for line in (tmp_path / "selfcheck.jsonl").read_text().splitlines()]
    assert line["paired_noise_ratio"] == floor["paired_noise_ratio"] > 0
    assert line["environment"]["torch"]
    assert len(line["samples"]) == 6
    assert all(len(processes) == 5 for processes in line["samples"].values())
