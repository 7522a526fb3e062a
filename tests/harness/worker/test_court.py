"""The court: what its files say, and what is made of the rows that they end in."""

import os
from collections import Counter

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.rows.run_files import read_rows
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.start import RunOptions, resume_run
from attnbench.impls.problem import Problem
from attnbench.impls.shared.cpu_flags import cpu_flags
from tests.conftest import ROOT
from tests.harness.worker.court import FOLDER, PROBLEM, Fate, Suspect, court, fate_of, suspects

MOST_ESCAPES = 10


def backends_that_must(fate):
    return [name for one in suspects() if one.must is fate for name in one.backends]


# ---- the files -----------------------------------------------------------------------------------


def test_the_shipped_files_are_cheats_and_honest_neighbours():
    found = suspects()
    assert {one.name for one in found} == {path.stem for path in FOLDER.glob("[!_]*.py")}
    assert len(backends_that_must(Fate.UNTOUCHED)) >= 5
    assert all(one.what.startswith("Honest: ") == (one.must is Fate.UNTOUCHED) for one in found)


def test_few_cheats_escape_and_each_stands_in_security_with_its_reason():
    words = " ".join((ROOT / "SECURITY.md").read_text().split())
    escapes = [one for one in suspects() if one.must is Fate.ESCAPED]
    assert sum(len(one.backends) for one in escapes) <= MOST_ESCAPES
    assert [one.name for one in escapes if f"`{one.name}`: {one.said}" not in words] == []


def test_the_readme_says_how_many_cheats_there_are_and_what_must_become_of_them():
    convicted, shown, contained, escaped = (
        len(backends_that_must(fate))
        for fate in (Fate.CONVICTED, Fate.SHOWN, Fate.CONTAINED, Fate.ESCAPED)
    )
    words = " ".join((ROOT / "README.md").read_text().split())
    assert (
        f"tries {convicted + shown + contained + escaped} backends that cheat: {convicted} must be"
        f" convicted, {shown} must show the bytes that they hide, {contained} gain nothing"
        f" and harm only their own process, and {escaped} escape"
    ) in words


# ---- what becomes of them ------------------------------------------------------------------------


def suspect_of(kind, said):
    return Suspect(name="x", what="x", problem=Problem(**PROBLEM), kind=kind, said=said)


def row(status, reason="", **fields):
    return {"status": status, "reason": reason, **fields}


SHOWN = suspect_of("SHOWN", {"field": "workspace_bytes", "least": 1000})
CONTAINED = suspect_of("CONTAINED", "why")
SLOW, FAST = row("ok", block_ms=[[[1.0, 1.1, 1.0]]]), row("ok", block_ms=[[[0.4, 0.4, 2.0]]])


@pytest.mark.parametrize(
    ("one", "ended", "fate"),
    [
        (suspect_of("CONVICTED", "x"), row("incorrect", "x"), Fate.CONVICTED),
        (suspect_of("CONVICTED", "x"), row("ok"), Fate.ESCAPED),
        (suspect_of("CONVICTED", "x"), row("unavailable", "no GPU"), Fate.NOT_RUN),
        (suspect_of("CONVICTED", "x"), row("interrupted", "SIGINT"), Fate.NOT_RUN),
        (SHOWN, row("ok", workspace_bytes=1000), Fate.SHOWN),
        (SHOWN, row("ok", workspace_bytes=999), Fate.ESCAPED),
        (SHOWN, row("ok", workspace_bytes=None), Fate.ESCAPED),
        (SHOWN, row("ok"), Fate.ESCAPED),
        (SHOWN, row("error", "a bug", workspace_bytes=1000), Fate.CONVICTED),
        (CONTAINED, SLOW, Fate.CONTAINED),
        (CONTAINED, FAST, Fate.ESCAPED),
        (CONTAINED, row("error", "a bug"), Fate.CONVICTED),
        (suspect_of("ESCAPES", "why"), SLOW, Fate.ESCAPED),
        (suspect_of("HONEST", True), SLOW, Fate.UNTOUCHED),
        (suspect_of("HONEST", True), row("crashed", "x"), Fate.CONVICTED),
    ],
)
def test_what_becomes_of_a_backend_follows_from_its_row(one, ended, fate):
    assert fate_of(one, ended, SLOW) is fate


def test_nothing_is_contained_if_its_neighbour_fails():
    assert fate_of(CONTAINED, SLOW, row("error", "a bug")) is Fate.ESCAPED


# ---- the whole -----------------------------------------------------------------------------------


@pytest.mark.long
def test_the_rows_are_kept_and_no_court_is_resumed(tmp_path):
    before = os.environ.get("ATTNBENCH_BACKENDS")
    options = RunOptions(command=["court"], listener=Listener(), embedded=True)
    names = ("replaces_the_check", "sets_the_matmul_precision", "shuffles_the_keys")
    path, found = court(
        "cpu", tmp_path, 0, options, [one for one in suspects() if one.name in names]
    )
    assert os.environ.get("ATTNBENCH_BACKENDS") == before
    precision = "convicted" if "amx_bf16" in cpu_flags() else "contained"
    assert [one.fate for one in found] == ["convicted", precision, "untouched"]
    assert all(one.as_said for one in found)
    assert len([*read_rows(path)]) == len(found) + 1  # the neighbour of what is contained
    with pytest.raises(BadInput, match="tests backends that cheat, and cannot be resumed"):
        resume_run(path, options)


@pytest.mark.nightly
def test_every_backend_ends_as_its_file_says_and_few_escape(tmp_path):
    options = RunOptions(command=["court"], listener=Listener())
    _, found = court("cpu", tmp_path, 0, options, suspects())
    assert not [one for one in found if not one.as_said]
    fates = Counter(one.fate for one in found)
    assert fates[Fate.ESCAPED] <= MOST_ESCAPES
    assert fates[Fate.NOT_RUN] < MOST_ESCAPES
