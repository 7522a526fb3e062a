"""`attnbench published`, and the names of its tables in show, report and compare."""

import json

import pytest

from attnbench.harness.published.tables import read
from tests.conftest import ROOT

REFERENCE = str(ROOT / "results" / "reference")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["published"], "cudnn-h200-decode"),
        (["published", "cudnn-h200", "--backward", "2.5"], "53.3 %"),
        (["show", "published:cudnn-h200"], "42.7 %"),
        (["advise", "llama-3-8b", "--device", "cpu", "--published", "h200"], "heads 64 for 32"),
        (["published", "--model", "llama-3-8b", "--device", "h200"], "heads 64 for 32"),
        (
            ["compare", "published:flashattention-a100", "cpu-20261126-published"],
            "ratios only",
        ),
    ],
)
def test_published_tables_are_printed_as_somebody_elses(here, words, said):
    done = here(*words, "--runs", REFERENCE)
    assert done.returncode == 0
    assert said in done.stdout
    assert "not checked by us" in done.stdout


@pytest.mark.parametrize("verb", ["published", "show"])
def test_the_page_is_written(here, verb, tmp_path):
    page = tmp_path / "wall.html"
    names = ["published:cudnn-h200"] if verb == "show" else []
    done = here(verb, *names, "-o", str(page), "--runs", REFERENCE)
    assert done.returncode == 0
    assert done.stdout.strip() == str(page)
    assert "The wall on real GPUs" in page.read_text()


def test_the_page_is_opened_where_it_was_written(here, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("typer.launch", opened.append)
    page = tmp_path / "wall.html"
    done = here("show", "published:cudnn-h200", "--open", "-o", str(page))
    assert done.stdout.strip() == str(page)
    assert opened == [page.as_uri()]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "published:cudnn-h200", "--all", "--salvage"], "--all, --salvage"),
        (["show", "published:cudnn-h200", "-o", "/dev/null", "--figures", "x"], "--figures"),
    ],
)
def test_options_of_runs_that_do_nothing_here_are_named(here, words, said):
    done = here(*words)
    assert done.returncode == 0
    assert f"note: {said}: no effect on what others published\n" in done.stderr


def test_published_shapes_are_a_field_of_their_own_in_json(here, tmp_path):
    asked = ("advise", "llama-3-8b", "--device", "cpu", "--json", "--runs", str(tmp_path))
    asked += ("--memory-gib", "24")
    found = json.loads(here(*asked, "--published", "h200").stdout)
    rows = found.pop("published_by_others")
    assert {one["phase"] for one in rows} == {"prefill", "decode"}
    for one in rows:
        cells = [cell for cell in read(one["table"]).cells if cell.row == one["row"]]
        assert one["ms"] in [cell.ms for cell in cells]
    alone = json.loads(here(*asked).stdout)
    assert alone.pop("published_by_others") is None
    for name in ("answer", "decisions", "memory", "longest", "missing"):
        assert alone[name] == found[name]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "published:cudnn-h200", "--format", "csv"], "--format csv: of runs"),
        (["show", "published:cudnn-h200", "--format", "md"], "there is an html page"),
        (["show", "published:h300"], "'h300': no published table; there are: cudnn-a100-decode"),
        (["published", "--model", "gpt2"], "--model: alone it asks nothing"),
        (["published", "--model", "gpt2", "--device", "h300"], "no published table is of it"),
        (["published", "--backward", "3"], "--backward '3': "),
        (["compare", "published:cudnn-h200"], "wanted a run of yours"),
        (
            ["compare", "published:cudnn-h200", "h200-20261126-quickstart"],
            "no case of the same shape, dtype and passes; measure some with `attnbench run",
        ),
        (["compare", "published:cudnn-h200", "x", "--gate", "latency: 5%"], "--gate: for runs"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(here, words, said):
    done = here(*words, *(["--runs", REFERENCE] if words[0] != "published" else []))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
