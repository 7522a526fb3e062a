"""harness/rows/names.py: names of runs."""

import shutil

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.rows import names
from attnbench.harness.rows.names import earlier_runs, find, number_of_last
from tests.made_runs import PLANNED, fake_run, row, write_run


@pytest.fixture
def run(tmp_path):
    return fake_run(tmp_path / "results", 1)


def test_a_run_elsewhere_is_kept_by_its_whole_path(run, tmp_path):
    root = tmp_path / "elsewhere"
    names.save("main", run, root, force=False)
    assert find("main", root) == run.resolve()


def test_a_downloaded_baseline_names_no_run_elsewhere(run, tmp_path):
    names.save("main", run, tmp_path / "elsewhere", force=False)
    shutil.copytree(tmp_path / "elsewhere", tmp_path / "downloaded")
    with pytest.raises(BadInput, match="was not saved here; save it again"):
        find("main", tmp_path / "downloaded")
    file = tmp_path / "downloaded" / "baselines" / "main.json"
    file.write_text(file.read_text().replace(str(run), f"../results/{run.name}"))
    with pytest.raises(BadInput, match="was not saved here; save it again"):
        find("main", tmp_path / "downloaded")


def test_links_out_of_a_downloaded_folder_name_no_run(run, tmp_path):
    downloaded = tmp_path / "downloaded"
    fake_run(downloaded, 2)
    for name, target in (("latest", run), ("mine", run), ("baselines", tmp_path / "victim")):
        (downloaded / name).symlink_to(target)
    names.save("main", run, tmp_path / "victim", force=False)
    (tmp_path / "victim" / "main.json").symlink_to(tmp_path / "victim" / "baselines" / "main.json")
    before = sorted((tmp_path / "victim").rglob("*"))
    for name in ("latest", "mine", str(downloaded / "latest")):
        with pytest.raises(BadInput, match="is a link out of a folder of results"):
            find(name, downloaded)
    assert names.saved(downloaded) == []
    with pytest.raises(BadInput, match="no such run, and no baseline"):
        find("main", downloaded)
    with pytest.raises(BadInput, match="a link, and links are not followed"):
        names.save("other", run, downloaded, force=False)
    assert sorted((tmp_path / "victim").rglob("*")) == before


def test_a_name_that_is_taken_stays_as_it_is(run):
    names.save("main", run, run.parent, force=False)
    with pytest.raises(BadInput, match="already a baseline"):
        names.save("main", fake_run(run.parent, 2), run.parent, force=False)
    assert find("main", run.parent) == run.resolve()


@pytest.mark.parametrize(
    "name", ["", "../up", ".hidden", "a/b", "a b", "\x1b", "x" * 65, "latest/"]
)
def test_a_bad_name_is_refused(run, name):
    with pytest.raises(BadInput, match="not a name for a baseline"):
        names.save(name, run, run.parent, force=False)


def test_a_baseline_whose_run_is_gone_says_so(run):
    names.save("main", run, run.parent, force=False)
    shutil.rmtree(run)
    with pytest.raises(BadInput, match="is gone"):
        find("main", run.parent)


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
        find("main", run.parent)
    with pytest.raises(BadInput):
        names.saved(run.parent)


# ---- several runs --------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path):
    """Four runs of one scenario, the second not finished, one of another."""
    root = tmp_path / "results"
    for number, scenario in enumerate(("mine", "mine", "other", "mine", "mine")):
        name = f"2026112{number}T090000Z-{scenario}-0000000{number}"
        meta = {"run": name, "scenario": {"name": scenario, "plan": {}}}
        made = write_run(tmp_path / str(number), PLANNED, [row(one) for one in PLANNED], **meta)
        root.mkdir(exist_ok=True)
        made.rename(root / name)
    torn = root / "20261121T090000Z-mine-00000001" / "rows.jsonl"
    torn.write_text(torn.read_text().splitlines()[0] + "\n")
    return root


def days(paths):
    return [path.name[6:8] for path in paths]


def test_earlier_runs_are_finished_ones_of_the_same_scenario_newest_first(stored):
    assert days(earlier_runs(find("20261124T090000Z-mine-00000004", stored), stored)) == [
        "23",
        "20",
    ]


@pytest.mark.parametrize(
    "name", ["last:", "last:0", "last:-1", "last:1000", "last:٣", "last:5@old"]
)
def test_a_wrong_number_of_runs_is_refused(name):
    with pytest.raises(BadInput, match="wanted 1 to 999 runs"):
        number_of_last(name)


def test_a_link_out_of_the_folder_is_refused(stored, tmp_path):
    (tmp_path / "private").mkdir()
    (stored / "20261124T090000Z-mine-00000004").rename(tmp_path / "private" / "run")
    (stored / "20261124T090000Z-mine-00000004").symlink_to(tmp_path / "private" / "run")
    assert days([find("mine", stored)]) == ["23"]
    with pytest.raises(BadInput, match="is a link out of a folder of results"):
        find("20261124T090000Z-mine-00000004", stored)
