"""The court: what its files say, and what is made of the rows that they end in."""

import os

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.measure.process_state import ProcessState
from attnbench.harness.rows.record import Status
from attnbench.harness.rows.run_files import read_rows
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.start import RunOptions, resume_run
from tests.conftest import ROOT
from tests.fakes.cheats._torch_backends import settable
from tests.harness.worker.court import (
    FOLDER,
    WELL,
    Conviction,
    Shown,
    Verdict,
    cheat_verdict,
    court,
    honest_verdict,
    suspects,
)

CONVICTION = Conviction(statuses=(Status.INCORRECT,), reason="(?i)from memory")
SHOWN = Shown(field="workspace_bytes", least=1000)


# ---- the files -----------------------------------------------------------------------------------


def test_the_shipped_files_are_cheats_and_honest_neighbours():
    found = suspects()
    assert {one.name for one in found} == {path.stem for path in FOLDER.glob("[!_]*.py")}
    assert sum(one.must is None for one in found) >= 5
    assert all(one.what.startswith("Honest: ") == (one.must is None) for one in found)


def test_the_readme_says_how_many_cheats_there_are_and_what_must_become_of_them():
    found = suspects()
    must_end = sum(len(one.backends) for one in found if isinstance(one.must, Conviction))
    must_show = sum(len(one.backends) for one in found if isinstance(one.must, Shown))
    words = " ".join((ROOT / "README.md").read_text().split())
    assert (
        f"tries {must_end + must_show} backends that cheat: {must_end} must be convicted, and"
        f" {must_show} that are right must show the bytes"
    ) in words


def test_each_thing_that_torch_backends_lets_one_set_has_a_cheat():
    (one,) = (one for one in suspects() if one.name == "sets_one_thing_of_torch_backends")
    state = ProcessState()
    changed = {name for name, thing in settable().items() if thing.change()}
    state.undo()
    assert changed <= set(one.variants)
    assert len(one.backends) == len(set(one.variants)) > 30


# ---- verdicts ------------------------------------------------------------------------------------


def row(status, reason="", **fields):
    return {"status": status, "reason": reason, **fields}


@pytest.mark.parametrize(
    ("must", "ended", "verdict"),
    [
        (CONVICTION, row("incorrect", "answers from memory"), Verdict.CONVICTED),
        (CONVICTION, row("incorrect", "3 times as far"), Verdict.OTHERWISE),
        (CONVICTION, row("error", "answers from memory"), Verdict.OTHERWISE),
        (CONVICTION, row("crashed", "SIGSEGV"), Verdict.OTHERWISE),
        (CONVICTION, row("ok"), Verdict.ESCAPED),
        (CONVICTION, row("unavailable", "a CPU has no streams"), Verdict.NOT_APPLICABLE),
        (CONVICTION, row("interrupted", "stopped by SIGINT"), Verdict.NOT_APPLICABLE),
        (SHOWN, row("ok", workspace_bytes=1000), Verdict.CONVICTED),
        (SHOWN, row("ok", workspace_bytes=999), Verdict.ESCAPED),
        (SHOWN, row("ok", workspace_bytes=None), Verdict.ESCAPED),
        (SHOWN, row("ok"), Verdict.ESCAPED),
        (SHOWN, row("error", "a bug", workspace_bytes=1000), Verdict.OTHERWISE),
    ],
)
def test_a_cheat_is_convicted_only_if_its_row_ends_as_its_file_says(must, ended, verdict):
    assert cheat_verdict(must, ended) is verdict


@pytest.mark.parametrize("status", list(Status))
def test_an_honest_backend_is_untouched_only_if_it_is_ok(status):
    could_not_run = ("unavailable", "unsupported", "predicted_oom", "interrupted")
    wanted = Verdict.NOT_APPLICABLE if status in could_not_run else Verdict.TOUCHED
    wanted = Verdict.UNTOUCHED if status is Status.OK else wanted
    assert honest_verdict(row(status, "why")) is wanted


# ---- the whole -----------------------------------------------------------------------------------


@pytest.mark.long
def test_no_suspect_can_acquit_the_next_and_the_rows_are_kept(tmp_path):
    before = os.environ.get("ATTNBENCH_BACKENDS")
    options = RunOptions(command=["court"], listener=Listener(), embedded=True)
    names = ("replaces_the_check", "wrong_scale", "shuffles_the_keys")  # tried in this order
    path, found = court(
        "cpu", tmp_path, 0, options, [one for one in suspects() if one.name in names]
    )
    assert os.environ.get("ATTNBENCH_BACKENDS") == before
    after = [one.verdict for one in found if one.beside != "replaces_the_check"]
    assert after == ["convicted", *["untouched"] * 3, *["untouched"] * 4]
    assert len([*read_rows(path)]) == len(found)
    with pytest.raises(BadInput, match="is a court of backends"):
        resume_run(path, options)


@pytest.mark.nightly
def test_every_cheat_is_convicted_by_name_and_no_honest_backend_is(tmp_path):
    options = RunOptions(command=["court"], listener=Listener())
    _, found = court("cpu", tmp_path, 0, options, suspects())
    wrong = [one for one in found if one.verdict not in WELL]
    assert not wrong
    assert sum(one.verdict is Verdict.CONVICTED for one in found) >= 100
