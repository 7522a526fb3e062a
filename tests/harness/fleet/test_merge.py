"""A merged run is one run: every row and sample of its shards, once, and nothing else."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.fleet.merge import merge
from attnbench.harness.rows.run_files import read_meta
from tests.fakes.shard_runs import scenario, write_shard

COMMAND = ["attnbench", "merge"]
WALLS = {"find_wall": True, "studies": ["score_scale"]}


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    of = scenario(**WALLS)
    return [write_shard(tmp_path / "apart", f"{n}/3", of=of) for n in (1, 2, 3)]


def merged(paths: list[Path], tmp_path: Path, target: str | None = None) -> dict[str, Any]:
    return merge(paths, tmp_path / target if target else None, tmp_path / "results", COMMAND)


def test_an_interrupted_case_is_missing_though_it_has_a_row(tmp_path: Path) -> None:
    first = write_shard(tmp_path, "1/2")
    case = read_meta(first)["cases"][0]["case"]
    shutil.rmtree(first)
    runs = [write_shard(tmp_path, "1/2", ended={case: "interrupted"}), write_shard(tmp_path, "2/2")]
    found = merged(runs, tmp_path)
    assert found["missing"] == [case]
    assert found["absent_shards"] == []


def test_a_merged_run_is_written_through_no_link(shards: list[Path], tmp_path: Path) -> None:
    whole = Path(merged(shards, tmp_path)["run"])
    (tmp_path / "elsewhere").mkdir()
    moved = whole.rename(tmp_path / "elsewhere" / whole.name)
    (tmp_path / "results" / "latest").unlink()
    (tmp_path / "results" / "20261121T093000Z-other-00000000").mkdir()
    (tmp_path / "results" / "20261121T093000Z-other-00000000" / "run.json").touch()
    whole.symlink_to(moved)
    assert "is a link out of a folder of results" in refused(shards, tmp_path)


def test_the_same_rows_make_the_same_run_once_and_other_rows_another(
    shards: list[Path], tmp_path: Path
) -> None:
    one, two = merged(shards, tmp_path), merged(shards[::-1], tmp_path)
    assert one["run"] == two["run"]
    assert (one["changed"], two["changed"]) == (True, False)
    assert merged(shards[:2], tmp_path)["run"] != one["run"]


def test_a_torn_last_line_of_a_shard_is_left_out_and_said(
    shards: list[Path], tmp_path: Path
) -> None:
    rows = shards[0] / "rows.jsonl"
    rows.write_bytes(rows.read_bytes()[:-5])
    found = merged(shards, tmp_path)
    assert len(found["missing"]) == 1
    assert any("incomplete" in note for note in found["notes"])


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
        ({"backends": ["fused", "sdpa"]}, "scenario.backends"),
        ({"limits": {"memory_gib": 1}}, "scenario.limits.memory_gib"),
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
        ({"device_name": "H100"}, "on different devices (device_name: None and H100)"),
        ({"threads": 2}, "on different devices (threads: 1 and 2)"),
    ],
)
def test_shards_of_different_environments_and_devices_are_refused(
    tmp_path: Path, environment: dict[str, Any], said: str
) -> None:
    runs = [write_shard(tmp_path, "1/2"), write_shard(tmp_path, "2/2", environment=environment)]
    assert said in refused(runs, tmp_path)


def test_a_shard_that_was_measured_twice_is_refused(tmp_path: Path) -> None:
    runs = [write_shard(tmp_path, shard) for shard in ("1/2", "2/2", "2/2")]
    assert "both are shard 2/2; give one of them" in refused(runs, tmp_path)


def test_two_results_of_one_case_are_refused(shards: list[Path], tmp_path: Path) -> None:
    first, second, _ = (shard / "rows.jsonl" for shard in shards)
    with second.open("a") as file:
        file.write(first.read_text().splitlines(keepends=True)[0])
    assert ": both measured wall-fused-b1-" in refused(shards, tmp_path)


def test_what_was_merged_is_merged_no_further(shards: list[Path], tmp_path: Path) -> None:
    part = Path(merged(shards[:2], tmp_path)["run"])
    said = refused([part, shards[2]], tmp_path)
    assert said.endswith("run.json: made by merging already; give the shards that it was made of")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory_bytes": None}, "not readable as a shard (memory_bytes: found nothing, wanted"),
        (
            {"scenario": {"name": "../up"}},
            "not readable as a shard (scenario.name: found '../up', ",
        ),
        ({"shard": 5}, "not readable as a shard (shard: found 5, wanted "),
    ],
)
def test_a_run_that_is_broken_elsewhere_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    run = write_shard(tmp_path, "1/2")
    meta = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**meta, **changes}))
    assert f"run.json: {said}" in refused([run], tmp_path)


def test_another_folder_is_never_overwritten(shards: list[Path], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert "exists and holds something else" in refused(shards, tmp_path, "mine")
    own = write_shard(tmp_path, None)
    inside = f"apart/{shards[0].name}"
    merged(shards[:2], tmp_path, "part")
    for target in (own.name, inside, "part"):
        said = refused(shards[::2], tmp_path, target)
        assert "another run, or one with other rows; choose another folder" in said


def test_a_full_disk_leaves_no_half_run(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("attnbench.harness.fleet.merge.write_whole", full)
    (tmp_path / "results").mkdir()
    assert "cannot be written (No space left on device)" in refused(shards, tmp_path)
