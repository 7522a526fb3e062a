"""A merged run is one run: every row and sample of its shards, once, and nothing else."""

import json
import shutil
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput, EnvironmentUnmet
from attnbench.harness.files.safe_files import FileLock
from attnbench.harness.fleet.merge import Merged, merge, merge_suites
from attnbench.harness.fleet.merge import merged as merging
from attnbench.harness.rows.run_files import read_meta, read_rows
from attnbench.harness.store.suites import run_state
from tests.fakes.shard_runs import scenario, write_shard

COMMAND = ["attnbench", "merge"]
WALLS = {"find_wall": True, "studies": ["score_scale"]}


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    of = scenario(**WALLS)
    return [write_shard(tmp_path / "apart", f"{n}/3", of=of) for n in (1, 2, 3)]


def merged(paths: list[Path], tmp_path: Path, target: str | None = None) -> Merged:
    return merge(paths, tmp_path / target if target else None, tmp_path / "results", COMMAND)


def lines(run: Path) -> list[bytes]:
    return (run / "rows.jsonl").read_bytes().splitlines()


def test_every_row_of_every_shard_is_there_once_as_it_was_written(
    shards: list[Path], tmp_path: Path
) -> None:
    found = merged(shards, tmp_path)
    assert sorted(lines(found.path)) == sorted(line for run in shards for line in lines(run))
    assert (found.shards, found.of, found.missing, found.absent) == ([1, 2, 3], 3, [], [])


def test_the_plan_is_that_of_one_run_in_its_order(shards: list[Path], tmp_path: Path) -> None:
    one = read_meta(write_shard(tmp_path / "one", None, of=scenario(**WALLS)))
    meta = read_meta(merged(shards, tmp_path).path)
    assert [meta[name] for name in ("cases", "walls", "studies")] == [
        one[name] for name in ("cases", "walls", "studies")
    ]
    assert "shard" not in meta


def test_rows_come_in_the_order_of_the_plan(shards: list[Path], tmp_path: Path) -> None:
    run = merged(shards, tmp_path).path
    meta = read_meta(run)
    planned = [one["case"] for name in ("cases", "walls", "studies") for one in meta[name]]
    assert [row["case"] for row in read_rows(run)] == planned


def test_the_order_in_which_shards_are_given_does_not_matter(
    shards: list[Path], tmp_path: Path
) -> None:
    found = {
        (run := merged(list(order), tmp_path, f"m{number}").path, lines(run)[0])[1]
        + b"".join(lines(run))
        for number, order in enumerate(permutations(shards))
    }
    assert len(found) == 1


def test_merging_again_changes_nothing(shards: list[Path], tmp_path: Path) -> None:
    first = merged(shards, tmp_path)
    before = {path: path.read_bytes() for path in first.path.rglob("*") if path.is_file()}
    again = merged(shards, tmp_path)
    assert (again.path, again.changed) == (first.path, False)
    assert before == {path: path.read_bytes() for path in first.path.rglob("*") if path.is_file()}


def test_a_shard_given_twice_counts_once(shards: list[Path], tmp_path: Path) -> None:
    copy = tmp_path / "copied" / shards[0].name
    shutil.copytree(shards[0], copy)
    found = merged([*shards, shards[1], copy], tmp_path)
    assert len(lines(found.path)) == sum(len(lines(run)) for run in shards)


def test_a_merged_run_takes_the_shards_that_come_later(shards: list[Path], tmp_path: Path) -> None:
    whole = merged(shards, tmp_path, "whole").path
    part = merged(shards[::2], tmp_path, "part")
    assert (part.shards, part.absent) == ([1, 3], [2])
    from_part = merged([part.path, shards[1]], tmp_path, "from_part")
    in_place = merged(shards, tmp_path, "part")
    assert in_place.changed
    assert lines(from_part.path) == lines(whole) == lines(in_place.path)
    assert not from_part.missing


def test_what_is_missing_is_named(shards: list[Path], tmp_path: Path) -> None:
    own = [
        one["case"] for name in ("cases", "walls", "studies") for one in read_meta(shards[1])[name]
    ]
    found = merged([shards[0], shards[2]], tmp_path)
    assert sorted(found.missing) == sorted(own)
    assert found.absent == [2]
    state = run_state(found.path)
    assert state.missing == len(own)
    assert not state.is_finished


def test_an_interrupted_case_is_missing_though_it_has_a_row(tmp_path: Path) -> None:
    first = write_shard(tmp_path, "1/2")
    case = read_meta(first)["cases"][0]["case"]
    shutil.rmtree(first)
    runs = [
        write_shard(tmp_path, "1/2", ended={case: "interrupted"}),
        write_shard(tmp_path, "2/2"),
    ]
    found = merged(runs, tmp_path)
    assert found.missing == [case]
    assert found.absent == []


def test_a_shard_that_went_on_after_it_was_merged_brings_its_new_rows(tmp_path: Path) -> None:
    case = read_meta(write_shard(tmp_path / "see", "1/2"))["cases"][0]["case"]
    runs = [write_shard(tmp_path, "1/2", ended={case: "crashed"}), write_shard(tmp_path, "2/2")]
    before = merged(runs, tmp_path)
    row = next(row for row in read_rows(runs[0]) if row["case"] == case)
    again = {**row, "status": "ok", "reason": "", "attempt": 2}
    with (runs[0] / "rows.jsonl").open("a") as file:
        file.write(json.dumps(again) + "\n")
    after = merged(runs, tmp_path)
    assert (after.path, after.changed) == (before.path, True)
    attempts = [row["attempt"] for row in read_rows(after.path) if row["case"] == case]
    assert attempts == [1, 2]


def test_a_torn_last_line_of_a_shard_is_left_out_and_said(
    shards: list[Path], tmp_path: Path
) -> None:
    rows = shards[0] / "rows.jsonl"
    rows.write_bytes(rows.read_bytes()[:-5])
    found = merged(shards, tmp_path)
    assert len(found.missing) == 1
    assert any("torn off" in note for note in found.notes)


def test_the_devices_and_the_shards_are_kept(shards: list[Path], tmp_path: Path) -> None:
    meta = read_meta(merged(shards, tmp_path).path)
    assert [one["host"] for one in meta["devices"]] == ["node1", "node2", "node3"]
    assert [(one["number"], one["of"]) for one in meta["merged"]] == [(1, 3), (2, 3), (3, 3)]
    assert [one["run"] for one in meta["merged"]] == [run.name for run in shards]
    assert all(one["environment"]["cpu"] == "AMD EPYC" for one in meta["merged"])


def test_logs_and_telemetry_are_kept_apart(shards: list[Path], tmp_path: Path) -> None:
    (shards[1] / "telemetry.jsonl").write_text('{"t_ns": 1}\n')
    for device in (1, 2):  # of a shard that was itself measured on several
        (shards[2] / f"telemetry-{device}.jsonl").write_text(f'{{"t_ns": {device}}}\n')
    part = merged(shards[:2], tmp_path, "part").path
    run = merged([part, shards[2]], tmp_path).path
    logs = sorted(path.name for path in (run / "logs").iterdir())
    assert logs == [f"shard-{n}-worker-1.log" for n in (1, 2, 3)]
    assert (run / "logs" / "shard-2-worker-1.log").read_text() == "printed by 2/3\n"
    assert (run / "telemetry-2.jsonl").read_text() == '{"t_ns": 1}\n'
    assert (run / "telemetry-3-1.jsonl").read_text() == '{"t_ns": 1}\n'
    assert (run / "telemetry-3-2.jsonl").read_text() == '{"t_ns": 2}\n'
    assert not (run / "telemetry.jsonl").exists()


def test_links_in_a_shard_are_not_followed(shards: list[Path], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (shards[0] / "logs" / "worker-2.log").symlink_to(secret)
    (shards[0] / "telemetry.jsonl").symlink_to(secret)
    run = merged(shards, tmp_path).path
    assert not any(path.read_bytes() == b"secret" for path in run.rglob("*") if path.is_file())


def test_different_budgets_are_said_and_the_least_counts(tmp_path: Path) -> None:
    runs = [write_shard(tmp_path, f"{n}/2", memory_bytes=n << 28) for n in (1, 2)]
    found = merged(runs, tmp_path)
    assert read_meta(found.path)["memory_bytes"] == 1 << 28
    assert any("different memory budgets" in note for note in found.notes)


# ---- what is refused: one line, before anything is written ---------------------------------------


def refused(paths: list[Path], tmp_path: Path, target: str | None = None) -> str:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BadInput) as error:
        merged(paths, tmp_path, target)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2
    assert sorted(tmp_path.rglob("*")) == before
    return str(error.value)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"plan": "standard"}, "scenario.plan.like"),
        ({"backends": ["fused", "sdpa"]}, "scenario.backends"),
        ({"limits": {"memory_gib": 1}}, "scenario.limits.memory_gib"),
        ({"question": "Another?"}, "scenario.question"),
    ],
)
def test_shards_of_different_scenarios_are_refused(
    tmp_path: Path, changes: dict[str, Any], place: str
) -> None:
    runs = [write_shard(tmp_path, "1/2"), write_shard(tmp_path, "2/2", of=scenario(**changes))]
    assert f"shards of different plans ({place}: " in refused(runs, tmp_path)


def test_shards_of_different_counts_seeds_and_selections_are_refused(tmp_path: Path) -> None:
    first = write_shard(tmp_path, "1/2")
    assert "(number of shards: 2 and 3)" in refused([first, write_shard(tmp_path, "2/3")], tmp_path)
    assert "(seed: 0 and 1)" in refused([first, write_shard(tmp_path, "2/2", seed=1)], tmp_path)
    other = write_shard(tmp_path, "2/2")
    meta = json.loads((other / "run.json").read_text())
    meta["cases"].pop()
    (other / "run.json").write_text(json.dumps(meta))
    assert "(cases: 20 and 19)" in refused([first, other], tmp_path)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"torch": "2.13.0"}, "in different environments (torch: 2.12.0 and 2.13.0)"),
        ({"git": "abc"}, "in different environments (git: None and abc)"),
        ({"cpu": "Intel"}, "on different devices (cpu: AMD EPYC and Intel)"),
        ({"device_name": "H100"}, "on different devices (device_name: None and H100)"),
        ({"threads": 2}, "on different devices (threads: 1 and 2)"),
    ],
)
def test_shards_of_different_environments_and_devices_are_refused(
    tmp_path: Path, environment: dict[str, Any], said: str
) -> None:
    runs = [write_shard(tmp_path, "1/2"), write_shard(tmp_path, "2/2", environment=environment)]
    assert said in refused(runs, tmp_path)


def test_equal_devices_are_one_kind_whichever_was_visible(tmp_path: Path) -> None:
    gpus = [
        {"device_uuid": f"GPU-{n}", "allocator": {"CUDA_VISIBLE_DEVICES": str(n)}} for n in (1, 2)
    ]
    runs = [write_shard(tmp_path, f"{n}/2", environment=gpus[n - 1]) for n in (1, 2)]
    assert not merged(runs, tmp_path).missing


def test_a_shard_that_was_measured_twice_is_refused(tmp_path: Path) -> None:
    runs = [write_shard(tmp_path, shard) for shard in ("1/2", "2/2", "2/2")]
    assert "both are shard 2/2" in refused(runs, tmp_path)


def test_two_results_for_one_attempt_are_refused(shards: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "other" / shards[0].name
    shutil.copytree(shards[0], other)
    rows = other / "rows.jsonl"
    rows.write_text(rows.read_text().replace('"attempt": 1', '"attempt": 2', 1))
    assert "with different results" in refused([*shards, other], tmp_path)


def test_what_is_no_shard_is_refused(shards: list[Path], tmp_path: Path) -> None:
    whole = write_shard(tmp_path, None)
    assert "run.json: not a shard; wanted runs of" in refused([*shards, whole], tmp_path)


@pytest.mark.parametrize(
    "shard",
    [
        None,
        {},
        {"number": 0, "of": 2, "elsewhere": {}},
        {"number": 1, "of": "2", "elsewhere": {"cases": [], "walls": [], "studies": []}},
        {"number": 1, "of": 2, "elsewhere": {"cases": [1], "walls": [], "studies": []}},
        {"number": 1, "of": 2, "elsewhere": {"cases": [{"case": 1}], "walls": [], "studies": []}},
    ],
)
def test_a_broken_shard_is_refused(tmp_path: Path, shard: Any) -> None:
    run = write_shard(tmp_path, "1/2")
    meta = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**meta, "shard": shard}))
    assert "run.json: not readable as a shard" in refused([run], tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"memory_bytes": None},
        {"started_utc": None},
        {"started_utc": "yesterday"},
        {"seed": "1"},
        {"scenario": {}},
        {"scenario": {"name": "../../elsewhere"}},
        {"merged": []},
        {"merged": 5},
        {"merged": [{"number": 1, "of": 2, "run": "a", "memory_bytes": None}]},
    ],
)
def test_a_run_that_is_broken_elsewhere_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    run = write_shard(tmp_path, "1/2")
    meta = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**meta, **changes}))
    assert "run.json: not readable as a shard" in refused([run], tmp_path)


def test_another_folder_is_never_overwritten(shards: list[Path], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert "exists, and is no run" in refused(shards, tmp_path, "mine")
    own = write_shard(tmp_path, None)
    assert "a run that was not merged" in refused(shards, tmp_path, own.name)
    inside = f"apart/{shards[0].name}"
    assert "one of the runs to merge" in refused(shards, tmp_path, inside)


def test_rows_that_only_the_target_has_are_never_lost(shards: list[Path], tmp_path: Path) -> None:
    merged(shards[:2], tmp_path, "part")
    assert "rows that the given runs lack" in refused(shards[::2], tmp_path, "part")


def test_two_merges_of_the_same_shards_at_once_make_one_run(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, found = Path.rename, []

    def rename_late(path: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        found.append(merged(shards, tmp_path))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", rename_late)
    second = merged(shards, tmp_path)
    assert (second.path, second.changed, found[0].changed) == (found[0].path, False, True)
    assert [one.name for one in second.path.parent.iterdir() if not one.is_symlink()] == [
        second.path.name
    ]


def test_rows_that_another_process_adds_before_the_lock_are_never_lost(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = merged(shards[:1], tmp_path, "part").path
    lock = merging.writer_lock

    def lock_late(path: Path) -> FileLock:
        monkeypatch.setattr(merging, "writer_lock", lock)
        merged([shards[0], shards[2]], tmp_path, "part")
        return lock(path)

    monkeypatch.setattr(merging, "writer_lock", lock_late)
    with pytest.raises(BadInput, match="rows that the given runs lack"):
        merged(shards[:2], tmp_path, "part")
    assert len(lines(part)) == sum(len(lines(run)) for run in shards[::2])
    lock(part).release()


def test_a_log_that_cannot_be_read_is_said_and_one_that_cannot_be_written_ends_the_merge(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in shards:
        (run / "logs" / "worker-1.log").write_text("printed")
    opened = merging.open_plain

    def refuse(path: Path) -> int:
        if path.parent.name == "logs" and path.parent.parent == shards[1]:
            raise PermissionError(13, "Permission denied")
        return opened(path)

    with monkeypatch.context() as some:
        some.setattr(merging, "open_plain", refuse)
        found = merged(shards, tmp_path)
    assert [one for one in found.notes if "worker-1.log: cannot be read (Permission" in one]
    assert len(list((found.path / "logs").iterdir())) == 2

    def full(fd: int, data: bytes) -> None:
        if data == b"printed":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(merging, "write_all", full)
    assert "cannot be written (No space left on device)" in refused(shards, tmp_path, "other")
    assert not (tmp_path / "other").exists()


def test_a_full_disk_leaves_no_half_run(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("attnbench.harness.fleet.merge.merged.write_whole", full)
    (tmp_path / "results").mkdir()
    assert "cannot be written (No space left on device)" in refused(shards, tmp_path)


# ---- suites --------------------------------------------------------------------------------------


def write_suite_shard(root: Path, number: int, **more: Any) -> Path:
    """The shard of a suite of two scenarios, of which the second has one group."""
    planned = [scenario(), scenario(name="single", grid={"seq_len": 64, "d_model": 64, "heads": 1})]
    path = root / f"20261121T09300{number}Z-suite-0000000{number}"
    path.mkdir(parents=True)
    entries = []
    for place, of in enumerate(planned):
        entry = {"scenario": of.given(), "source": "test", "only": [], "within": [], "skip": []}
        entry |= {"run": None, "ended": None, "reason": "", "statuses": {}}
        if place == 0 or number == 1:
            run = write_shard(path, f"{number}/2", of=of, suite_entry=place)
            entry |= {"run": run.name, "ended": "finished"}
        else:
            entry |= {"ended": "refused", "reason": "--shard 2/2: empty"}
        entries.append(entry)
    document = {
        "schema": 1,
        "suite": path.name,
        "started_utc": f"2026-11-21T09:30:0{number}+00:00",
        "seed": 0,
        "pythons": [],
        "shard": {"number": number, "of": 2},
        "entries": entries,
        **more,
    }
    (path / "suite.json").write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("target", [None, "whole"])
def test_a_suite_is_merged_entry_by_entry(tmp_path: Path, target: str | None) -> None:
    suites = [write_suite_shard(tmp_path / "apart", number) for number in (1, 2)]
    to = tmp_path / target if target else None
    found = merge_suites(suites, to, tmp_path / "results", COMMAND)
    assert [len(lines(one.path)) for one in found] == [20, 2]
    folder = found[0].path.parent
    document = json.loads((folder / "suite.json").read_text())
    assert [one["ended"] for one in document["entries"]] == ["finished", "finished"]
    assert [one["run"] for one in document["entries"]] == [one.path.name for one in found]
    assert "shard" not in document
    again = merge_suites(suites, to, tmp_path / "results", COMMAND)
    assert [(one.path, one.changed) for one in again] == [(one.path, False) for one in found]


def test_a_merged_suite_has_one_writer(tmp_path: Path) -> None:
    suites = [write_suite_shard(tmp_path / "apart", number) for number in (1, 2)]
    folder = merge_suites(suites[:1], tmp_path / "whole", tmp_path, COMMAND)[0].path.parent
    lock = merging.writer_lock(folder)
    with pytest.raises(EnvironmentUnmet, match="is being written by another process"):
        merge_suites(suites, folder, tmp_path, COMMAND)
    lock.release()
    assert len(merge_suites(suites, folder, tmp_path, COMMAND)) == 2
    merging.writer_lock(folder).release()


def test_a_disk_that_is_full_at_the_end_of_a_suite_is_one_line_and_merging_again_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = [write_suite_shard(tmp_path / "apart", number) for number in (1, 2)]
    folder = merge_suites(suites[:1], tmp_path / "whole", tmp_path, COMMAND)[0].path.parent

    def full(path: Path, document: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as some:
        some.setattr(merging, "write_suite", full)
        with pytest.raises(BadInput, match=r"suite.json: cannot be written \(No space left"):
            merge_suites(suites, folder, tmp_path, COMMAND)
    assert len(merge_suites(suites, folder, tmp_path, COMMAND)) == 2


def test_two_merges_of_the_same_suites_at_once_make_one_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = [write_suite_shard(tmp_path / "apart", number) for number in (1, 2)]
    rename, found = Path.rename, []

    def rename_late(path: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        found.extend(merge_suites(suites, None, tmp_path / "results", COMMAND))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", rename_late)
    again = merge_suites(suites, None, tmp_path / "results", COMMAND)
    assert [(one.path, one.changed) for one in again] == [(one.path, False) for one in found]


def test_shards_of_different_suites_are_refused(tmp_path: Path) -> None:
    suites = [write_suite_shard(tmp_path, 1), write_suite_shard(tmp_path, 2, seed=5)]
    with pytest.raises(BadInput, match="shards of different suites"):
        merge_suites(suites, None, tmp_path / "results", COMMAND)
    assert not (tmp_path / "results").exists()
