"""reports/comparison/compare.py: what is compared with what, and what the comparison says."""

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.reports.comparison.compare import (
    Criteria,
    DifferentDevices,
    compare_backends,
    compare_runs,
)
from attnbench.reports.comparison.sentences import lines, verdict_text
from attnbench.reports.data.noise_floor import newest_noise_floor
from attnbench.reports.data.run_meta import fact_differences
from attnbench.reports.pages import markdown
from attnbench.reports.pages.comparison import MOST_ROWS, page
from tests.made_runs import (
    PLANNED,
    case,
    changed,
    fake_run,
    floor_file,
    problem,
    retold,
    starts,
    write_run,
)

CPU = {"device": "cpu", "cpu": "Imaginary CPU 9000"}


@pytest.fixture
def run(tmp_path):
    return fake_run(tmp_path / "results", 1)


def test_what_has_nothing_in_common_is_refused(run):
    other = fake_run(run.parent, 2, planned=[case("sdpa", problem(1024))])
    with pytest.raises(BadInput, match="no case in common"):
        compare_runs(run, other)
    with pytest.raises(BadInput, match="no case has a row"):
        compare_runs(run, write_run(run.parent, PLANNED, [], name="empty"))
    apart = [case("naive", problem(256)), case("fused", problem(512))]
    with pytest.raises(BadInput, match="no other backend"):
        compare_backends(fake_run(run.parent, 3, planned=apart), "fused")


def test_gpus_of_one_kind_with_other_uuids_are_different_devices(run):
    facts = {"device": "cuda", "device_name": "GPU"}
    one, other = (
        retold(fake_run(run.parent, seed), device_uuid=f"GPU-{seed}", **facts) for seed in (2, 3)
    )
    with pytest.raises(DifferentDevices, match="device_uuid differs"):
        compare_runs(one, other)
    assert compare_runs(one, other, Criteria(allow_different_devices=True))


@pytest.mark.parametrize(
    ("kernels", "verdict"),
    [
        (("flash", "flash"), "same"),
        (("flash", "cudnn"), "not decided"),
        ((None, None), "not decided"),
    ],
)
def test_bytes_of_two_devices_are_judged_for_one_kernel_only(run, kernels, verdict):
    """A published run, such as FlashAttention's, names no kernel."""
    one, other = (
        retold(changed(run, name, lambda row, of=kernel: row | {"kernel": of}), cpu=f"CPU {name}")
        for name, kernel in zip("ab", kernels, strict=True)
    )
    verdicts = compare_runs(one, other, Criteria(allow_different_devices=True)).verdicts
    found = [one for one in verdicts if one.metric == "peak_bytes"]
    assert found
    assert {one.verdict for one in found} == {verdict}
    assert all(one.ratio.value == 1 for one in found)
    assert all((one.mark is None) == (verdict == "not decided") for one in found)
    assert all(("other_device" in one.reasons) == (one.mark is None) for one in found)
    text = verdict_text(found[0])
    assert text == "same" if verdict == "same" else text.startswith("×1.00 ")


def test_another_commit_is_told_and_is_no_other_environment(run):
    found = compare_runs(run, retold(fake_run(run.parent, 2, 1.5), git="abc"))
    assert [one.fact for one in found.differences] == ["git"]
    threads = retold(fake_run(run.parent, 4), allocator={"OMP_NUM_THREADS": "1", "LANG": "C"})
    other = compare_runs(threads, retold(fake_run(run.parent, 5), allocator={"LANG": "C"}))
    assert any("differ: OMP_NUM_THREADS 1 before, unset now." in one for one in lines(other))
    assert not any("environment_differs" in one.reasons for one in found.verdicts)
    found = compare_runs(run, retold(fake_run(run.parent, 3, 1.5), torch="3.0"))
    assert all(
        "environment_differs" in one.reasons for one in found.verdicts if one.verdict == "slower"
    )


def test_backends_are_paired_by_session(run):
    together = changed(run, "together", lambda one: one | {"session": one["case"].split("-", 1)[1]})
    for path, paired in ((run, False), (together, True)):
        found = [*compare_backends(path, "fused").of("latency")]
        assert [one.ratio.paired for one in found] == [paired] * 4
        assert all(("unpaired" in one.reasons) is not paired for one in found)


def test_the_newest_check_of_this_device_counts(run):
    folder = run.parent
    floor_file(folder, run_noise_ratio=0.5, started_utc="2026-11-19T10:00:00+00:00")
    floor_file(folder)
    elsewhere = {"environment": {"cpu": "Another CPU"}, "run_noise_ratio": 0.9}
    floor_file(folder, **elsewhere, started_utc="2026-11-22T10:00:00+00:00")
    with (folder / "selfcheck.jsonl").open("a") as file:
        file.write('[]\n{"schema": 1}\nnot json\n{"schema": 7}\n')
    floor_file(folder, run_noise_ratio="x", started_utc="2026-11-23T10:00:00+00:00")
    floor = newest_noise_floor([folder], CPU)
    assert floor.check.run_noise_ratio == 0.06


def test_markdown_of_very_many_cases_stays_short_and_names_the_worst(run):
    cases = [case("sdpa", problem(n)) for n in range(16, 136)]
    base, new = fake_run(run.parent, 2, planned=cases), fake_run(run.parent, 3, 1.5, planned=cases)
    text = markdown.render(page(compare_runs(base, new)))
    assert len(text.encode()) < 1 << 20
    assert text.count("\n| sdpa") == MOST_ROWS
    assert "20 more cases left out" in text


def test_separate_starts_of_the_check_say_how_much_runs_differ(run):
    slower, slow = fake_run(run.parent, 2, 1.2), fake_run(run.parent, 3, 1.9)
    starts(run.parent, 0.05, count=2)
    assert not any(one.worse for one in compare_runs(run, slower).verdicts)
    starts(run.parent, 0.05, count=3, first=3)
    found = compare_runs(run, slow)
    assert found.floor.starts == 5
    assert all(one.worse for one in found.of("latency"))
    starts(run.parent, 0.5, count=4, first=10)
    assert not any(one.worse for one in compare_runs(run, slow).verdicts)


@pytest.mark.parametrize(
    ("last_contended", "counted"), [(60, 4), (61, 8)], ids=["undisturbed", "disturbed"]
)
def test_once_the_machine_is_idle_disturbed_starts_do_not_count(run, last_contended, counted):
    starts(run.parent, 0.9, blocks=120, contended_blocks=100)
    starts(run.parent, 0.02, first=5, blocks=120, contended_blocks=last_contended)
    assert newest_noise_floor([run.parent], CPU).starts == counted


def test_starts_under_other_conditions_do_not_count(run):
    starts(run.parent, 0.02)
    other = {"cpu": "Imaginary CPU 9000", "torch": "3.0"}
    floor_file(run.parent, environment=other, started_utc="2026-11-22T10:00:00+00:00")
    floor = newest_noise_floor([run.parent], CPU)
    assert (floor.starts, floor.between_runs) == (1, None)


@pytest.mark.parametrize(
    ("device", "before", "now", "differ"),
    [
        ("cpu", {}, {"caches": "warm"}, []),  # a run of an earlier version
        ("cpu", {}, {"caches": "cold"}, [("plan.caches", "warm", "cold")]),
        ("cuda", {}, {"caches": "cold"}, []),
    ],
)
def test_where_calls_found_their_keys_is_a_fact_of_a_cpu_only(device, before, now, differ):
    one, other = (
        {"device": device, "environment": {}, "scenario": {"plan": plan}} for plan in (before, now)
    )
    assert fact_differences(one, other) == differ
